"""Any dataset, by name or by path."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cores.config import Reach
from cores.config.run import AskedTask
from cores.data.arrays import from_npz, with_edge_truth
from cores.data.catalogue import DATASETS, REGISTERED, DatasetSpec, canonical_name
from cores.data.dataset import Dataset, checked, numbered, unusable_graphs
from cores.data.features import from_tu
from cores.data.folders import data_folder, dataset_path
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.labelled import OnError, read_dataset
from cores.data.inputs.sources import holds_rows, saved_by_pyg
from cores.data.inputs.stored import saved_graphs
from cores.data.lists import continuous_columns, from_graphs
from cores.data.nodes import MotifTruth, from_nodes, labels_nodes
from cores.data.raw import Rejected, Unusable
from cores.data.synthetic import NODE_GRAPHS, ba_motifs
from cores.data.tu import read_tu
from cores.errors import UserError
from cores.files import cache_folder
from cores.files.limits import check_regular


def load_dataset(
    dataset: str | Path,
    data_root: str | Path | None = None,
    *,
    columns: ColumnNames | None = None,
    smiles_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    split_column: str | None = None,
    on_error: OnError = "skip",
    task: AskedTask = "auto",
    reach: Reach | None = None,
) -> Dataset:
    """Load a dataset by name (any case), or any file or folder of labelled graphs by path.

    Registered datasets come from their own function, ``motifs`` is generated. The others are read
    from ``data_root``, else from the folder that the environment variable ``CORES_DATA`` names;
    else PyG downloads those of the TU collection to the user's cache folder. docs/inputs.md lists
    the kinds of files.

    Args:
        dataset: Name or path.
        data_root: Folder of the named datasets.
        columns: Which columns of a file hold molecules, labels, names and parts, together; or one
            by one:
        smiles_column: Of a file's molecules; this and the next two are found by their names where
            not given.
        label_column: Of its labels; of several, names with commas between them.
        id_column: Of its identifiers.
        split_column: That says train, val, calibration or test.
        on_error: What to do with rows of a file that are no graphs: ``"skip"`` counts them in the
            dataset's ``unusable``, ``"fail"`` raises at the first.
        task: What is to be predicted, ``"classification"``, ``"regression"`` or ``"multilabel"``;
            by default numbers where the labels are more than 20 different ones that are not whole,
            and several labels where several columns are named.
        reach: Of the neighbourhoods, where the nodes of one graph are classified.

    >>> load_dataset("motifs").class_names
    ('cycle', 'house')
    """
    name = canonical_name(str(dataset))
    named = ColumnNames(smiles_column, label_column, id_column, split_column)
    if columns is not None and named != ColumnNames():
        raise UserError("name the columns in `columns` or one by one, not in both")
    if name in REGISTERED:
        found = REGISTERED[name]()
        if labels_nodes(found):
            return checked(from_nodes(found, reach=reach, name=name, task=task))
        return checked(replace(from_graphs(found, task=task), name=name))
    if name in DATASETS:
        spec = DATASETS[name]
        if task in ("regression", "multilabel"):
            raise UserError(f'{name} has classes; leave task="{task}" out')
        if spec.source == "nodes":
            return checked(_nodes(spec, reach))
        return checked(READERS[spec.source](spec, data_folder(data_root)))
    return checked(_from_path(Path(name), columns or named, on_error, task, reach))


def _tu(spec: DatasetSpec, root: Path | None) -> Dataset:
    records = read_tu(dataset_path(spec, root))
    dataset = from_tu(spec, records)
    truth = (root or cache_folder()) / "other" / spec.edge_truth
    if spec.edge_truth and truth.exists():
        return with_edge_truth(dataset, records, truth)
    return dataset


def _npz(spec: DatasetSpec, root: Path | None) -> Dataset:
    return from_npz(spec.name, dataset_path(spec, root))


def _generated(spec: DatasetSpec, root: Path | None) -> Dataset:
    graphs = ba_motifs()
    return Dataset(spec.name, graphs, ("cycle", "house"), numbered(graphs.num_features))


def _nodes(spec: DatasetSpec, reach: Reach | None) -> Dataset:
    graph = NODE_GRAPHS[spec.name]()
    truth = MotifTruth(graph.motif_of_node, graph.in_motif)
    return from_nodes(
        graph.data, reach=reach, name=spec.name, class_names=graph.class_names, truth=truth
    )


READERS: dict[str, Callable[[DatasetSpec, Path | None], Dataset]] = {
    "tu": _tu,
    "npz": _npz,
    "code": _generated,
}
"""How a named dataset is read, by its kind."""


def _from_path(
    path: Path, columns: ColumnNames, on_error: OnError, task: AskedTask, reach: Reach | None
) -> Dataset:
    if not path.exists():
        raise UserError(f"dataset path {path} does not exist")
    if not path.is_dir():
        check_regular(path)
    if path.suffix.lower() == ".npz" and task not in ("regression", "multilabel"):
        found = _usable(from_npz(str(path), path), on_error)
        return replace(found, continuous=continuous_columns(found.graphs.x))
    if (saved := saved_by_pyg(path)) is not None:
        graphs = saved_graphs(saved)
        if len(graphs) == 1 and labels_nodes(graphs[0]):
            return from_nodes(graphs[0], reach=reach, name=str(path), task=task)
        listed = from_graphs(graphs, finite=False, task=task)
        found = _usable(replace(listed, name=str(path)), on_error)
        return replace(found, continuous=continuous_columns(found.graphs.x))
    if holds_rows(path):
        return read_dataset(path, columns, on_error, task)
    if task in ("regression", "multilabel"):
        what = "targets" if task == "regression" else "several labels"
        raise UserError(f"{path} has classes; {what} are in tables, JSON lines and PyG's files")
    records = read_tu(path)
    # Unknown attributes are measurements more often than not: put them on one scale.
    attributes = tuple(range(records.attributes.shape[1]))
    return _usable(from_tu(DatasetSpec(str(path), continuous=attributes), records), on_error)


def _usable(dataset: Dataset, on_error: OnError) -> Dataset:
    """A dataset of a file that is read at once, without the graphs that no model can read."""
    reasons = unusable_graphs(dataset.graphs)
    rejected = [Rejected(at, at + 1, str(at), reason) for at, reason in reasons.items()]
    if not rejected:
        return dataset
    unusable = Unusable.of(rejected)
    if on_error == "fail":
        raise UserError(f'{dataset.name}: {unusable.first[0]}; mend it, or set on_error="skip"')
    if len(rejected) == len(dataset):
        raise UserError(f"{dataset.name} holds no usable graph ({unusable})")
    kept = [graph for graph in range(len(dataset)) if graph not in reasons]
    return replace(dataset[kept], unusable=unusable)
