"""The paper's nine datasets (Table 1) and those with ground truth, as rows of one table."""

import hashlib
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from cores.data.store import GraphStore
from cores.data.synthetic import ba_motifs
from cores.data.tu import TURecords, read_tu
from cores.errors import UserError, nearest
from cores.files import cache_folder, make_folder


@dataclass(frozen=True)
class DatasetSpec:
    """Choices that turn a dataset's files into the features of Table 1."""

    name: str
    file: str = ""
    """Name of the file, where it differs."""
    columns: tuple[int, ...] | None = None
    """Columns kept, of the attributes followed by the one-hot labels; None: all."""
    continuous: tuple[int, ...] = ()
    """Columns (of those kept) to standardise."""
    clipped: tuple[int, ...] = ()
    """Columns (of those kept) to clip to their 0.1 % and 99.9 % quantiles first."""
    cleaned: bool = False
    """The variant without isomorphic duplicates."""
    source: Literal["tu", "npz", "code"] = "tu"
    """Text files in TU format, flat arrays, or made by code."""
    edge_truth: str = ""
    """File that marks the edges of the ground truth, line by line of the adjacency file."""

    @property
    def stem(self) -> str:
        """Name of the file, without its ending."""
        return self.file or self.name


_COLUMNS_BZR = (0, 1, 2, 3, 8, 9, 10, 11, 18, 19)
_ROWS = (
    DatasetSpec("BZR", columns=_COLUMNS_BZR, continuous=(0, 1, 2)),
    DatasetSpec("COX2", columns=_COLUMNS_BZR, continuous=(0, 1, 2)),
    DatasetSpec("DD", columns=tuple(range(20))),
    DatasetSpec("ENZYMES", continuous=tuple(range(18)), clipped=(0,)),
    DatasetSpec("MUTAG", cleaned=True),
    DatasetSpec("NCI1", columns=tuple(range(7))),
    DatasetSpec("NCI109", columns=tuple(range(8))),
    DatasetSpec("PROTEINS", continuous=(0,), clipped=(0,)),
    DatasetSpec("PTC", file="PTC_FM", columns=tuple(range(1, 9))),
    DatasetSpec("BA_2Motifs", source="npz"),
    DatasetSpec("Benzene", source="npz"),
    DatasetSpec("Mutagenicity", edge_truth="Mutagenicity_edge_gt.npz"),
    DatasetSpec("motifs", source="code"),
)
DATASETS = {spec.name: spec for spec in _ROWS}
"""Every dataset known by name."""
MOST_LABELS = 10_000
"""Most columns that one kind of label may take as one-hot."""
_BY_FOLDED_NAME = {name.lower(): name for name in DATASETS} | {"ptc_fm": "PTC"}


@dataclass(frozen=True)
class Dataset:
    """Graphs with what is needed to prepare and to name them; a sequence of PyG graphs."""

    name: str
    graphs: GraphStore
    class_names: tuple[str, ...]
    """The labels as the files spell them, by class."""
    feature_names: tuple[str, ...]
    """What each column of the node features is; a model reads only data with the same columns."""
    edge_feature_names: tuple[str, ...] = ()
    continuous: tuple[int, ...] = ()
    clipped: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: int) -> Data:
        if not -len(self) <= index < len(self):
            raise IndexError(f"graph {index} of {len(self)}")
        return self.graphs.graph(index % len(self))

    def __iter__(self) -> Iterator[Data]:
        return (self.graphs.graph(index) for index in range(len(self)))

    @property
    def num_classes(self) -> int:
        """Number of labels."""
        return len(self.class_names)

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change with any feature, edge or label."""
        digest = hashlib.sha256()
        graphs = self.graphs
        for tensor in (graphs.x, graphs.edge_index, graphs.y, graphs.node_ptr, graphs.edge_ptr):
            digest.update(tensor.contiguous().numpy().tobytes())
        if graphs.edge_attr is not None:
            digest.update(graphs.edge_attr.contiguous().numpy().tobytes())
        return digest.hexdigest()[:12]


def canonical_name(dataset: str) -> str:
    """A known dataset's own spelling; a path stays as it is.

    >>> canonical_name("mutag"), canonical_name("ptc_fm")
    ('MUTAG', 'PTC')
    """
    if not dataset.strip():
        raise UserError("the dataset's name is empty; `cores datasets` lists what is known")
    if dataset.lower() in _BY_FOLDED_NAME:
        return _BY_FOLDED_NAME[dataset.lower()]
    if os.sep in dataset or Path(dataset).exists():
        return dataset
    raise UserError(
        f"unknown dataset {dataset!r}; {nearest(dataset, DATASETS)} "
        "(or the path of a zip or folder in TU format)"
    )


def load_dataset(dataset: str, data_root: str | Path | None = None) -> Dataset:
    """Load a dataset by name (any case), or any zip or folder in TU format by path.

    Named datasets are read from ``data_root``, else from the folder that the environment variable
    ``CORES_DATA`` names, else downloaded by PyG to the user's cache folder. ``motifs`` is
    generated and needs no file.

    >>> load_dataset("motifs").class_names
    ('cycle', 'house')
    """
    name = canonical_name(dataset)
    if name not in DATASETS:
        return _checked(_from_path(Path(name)))
    spec = DATASETS[name]
    if spec.source == "code":
        graphs = ba_motifs()
        return Dataset(name, graphs, ("cycle", "house"), _numbered(graphs.num_features))
    root = data_folder(data_root)
    if spec.source == "npz":
        path = _npz(root, f"{spec.stem}.npz")
        try:
            return _checked(_from_npz(name, path))
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise UserError(f"{path} does not hold what {name} needs ({reason})") from None
    records = read_tu(_locate(spec, root))
    loaded = _from_tu(spec, records)
    truth = (root or cache_folder()) / "other" / spec.edge_truth
    if spec.edge_truth and truth.exists():
        loaded = _with_edge_truth(loaded, records, truth)
    return _checked(loaded)


def _from_path(path: Path) -> Dataset:
    if not path.exists():
        raise UserError(f"dataset path {path} does not exist")
    records = read_tu(path)
    # Unknown attributes are measurements more often than not: put them on one scale.
    attributes = tuple(range(records.attributes.shape[1]))
    return _from_tu(DatasetSpec(str(path), continuous=attributes), records)


def data_folder(given: str | Path | None) -> Path | None:
    """The folder of the datasets: as given, or as CORES_DATA names it; None for neither."""
    named = given or os.environ.get("CORES_DATA")
    if not named:
        return None
    try:
        root = Path(named).expanduser()
    except RuntimeError:  # ~somebody who is not known here
        root = Path(named)
    if not root.is_dir():
        source = "--data-root" if given else "CORES_DATA"
        raise UserError(f"data folder {root} does not exist; set {source} to the right one")
    return root


def _locate(spec: DatasetSpec, root: Path | None) -> Path:
    """The zip or folder of a dataset in TU format."""
    suffix = "_cleaned" if spec.cleaned else ""
    candidates = [
        (root or cache_folder()) / f"tu{suffix}" / f"{spec.stem}.zip",
        (root or cache_folder()) / f"tu{suffix}" / spec.stem,
        (root or cache_folder()) / spec.stem / f"raw{suffix}",
    ]
    found = [path for path in candidates if path.exists()]
    if found:
        return found[0]
    if root is None:
        return _downloaded(spec, candidates[0])
    raise UserError(
        f"{root} has no {spec.name}; put it at {candidates[0]} or {candidates[2]}{os.sep}"
    )


def _downloaded(spec: DatasetSpec, path: Path) -> Path:
    """Download a dataset's zip from where PyG gets it."""
    import aiohttp
    from torch_geometric.data import download_url
    from torch_geometric.datasets import TUDataset

    url = TUDataset.cleaned_url if spec.cleaned else TUDataset.url
    make_folder(path.parent)
    try:
        download_url(f"{url}/{spec.stem}.zip", str(path.parent), log=False)
    except (OSError, RuntimeError, aiohttp.ClientError) as error:
        raise UserError(
            f"cannot download {spec.name} ({type(error).__name__}); put its zip at {path}, "
            f"or at FOLDER/{path.parent.name}/{path.name} and set CORES_DATA to FOLDER"
        ) from None
    return path


def _npz(root: Path | None, file: str) -> Path:
    path = (root or cache_folder()) / "other" / file
    if not path.exists():
        raise UserError(f"{path} is missing; put it there, or set CORES_DATA to its folder")
    return path


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):
        raise UserError(f"{path} is not a readable npz file; get it anew") from None


def _one_hot(
    labels: NDArray[np.int64], word: str, source: str
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Columns for every value from the least to the greatest, kind after kind, and their names."""
    blocks = [np.empty((len(labels), 0), np.float32)]
    names: list[str] = []
    for number, kind in enumerate(labels.T):
        least, greatest = (int(kind.min()), int(kind.max())) if len(kind) else (0, -1)
        if greatest - least >= MOST_LABELS:
            raise UserError(
                f"{source}: {word} labels run from {least} to {greatest}; "
                f"renumber them to at most {MOST_LABELS} values"
            )
        block = np.zeros((len(kind), greatest - least + 1), np.float32)
        block[np.arange(len(kind)), kind - least] = 1
        blocks.append(block)
        names += [f"{word} label {number} = {value}" for value in range(least, greatest + 1)]
    return np.concatenate(blocks, axis=1), tuple(names)


def _numbered(columns: int) -> tuple[str, ...]:
    return tuple(f"feature {number}" for number in range(columns))


def _pointers(owner: NDArray[np.int64], groups: int) -> Tensor:
    counts = np.bincount(owner, minlength=groups)
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]))


def _from_tu(spec: DatasetSpec, records: TURecords) -> Dataset:
    one_hot, label_names = _one_hot(records.node_labels, "node", spec.name)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused below
        features = np.concatenate([records.attributes.astype(np.float32), one_hot], axis=1)
    names = (*(f"attribute {i}" for i in range(records.attributes.shape[1])), *label_names)
    needed = max((*(spec.columns or ()), *spec.continuous, *spec.clipped), default=-1) + 1
    if features.shape[1] < needed:
        raise UserError(
            f"{spec.name} has {features.shape[1]} feature columns in these files, not {needed} or "
            "more: another dataset of that name? Give its path instead of the name"
        )
    if spec.columns is not None:
        features = features[:, list(spec.columns)]
        names = tuple(names[column] for column in spec.columns)
    if not names:
        features, names = np.ones((len(features), 1), np.float32), ("constant",)
    class_labels, classes = np.unique(records.graph_labels, return_inverse=True)
    node_ptr = _pointers(records.graph_of_node, len(classes))
    graph_of_edge = records.graph_of_node[records.edge_index[0]]
    edge_attr, edge_names = _one_hot(records.edge_labels, "edge", spec.name)
    graphs = GraphStore(
        x=torch.from_numpy(features),
        edge_index=torch.from_numpy(records.edge_index) - node_ptr[torch.from_numpy(graph_of_edge)],
        y=torch.from_numpy(classes.astype(np.int64)),
        node_ptr=node_ptr,
        edge_ptr=_pointers(graph_of_edge, len(classes)),
        edge_attr=torch.from_numpy(edge_attr) if edge_names else None,
    )
    return Dataset(
        spec.name,
        graphs,
        class_names=tuple(str(label) for label in class_labels),
        feature_names=names,
        edge_feature_names=edge_names,
        continuous=spec.continuous,
        clipped=spec.clipped,
    )


def _with_edge_truth(dataset: Dataset, records: TURecords, path: Path) -> Dataset:
    """Mutagenicity's marked edges; a node is marked when one of its edges is."""
    arrays = _arrays(path)
    if "edge_gt" not in arrays:
        raise UserError(f"{path} lacks the array 'edge_gt'")
    marked = arrays["edge_gt"].astype(bool)
    if len(marked) != len(records.edge_line):
        raise UserError(f"{path} marks {len(marked)} edges, the data has {len(records.edge_line)}")
    edge_truth = marked[records.edge_line]
    node_truth = np.zeros(len(records.graph_of_node), dtype=bool)
    node_truth[records.edge_index[:, edge_truth].ravel()] = True
    graphs = replace(
        dataset.graphs,
        node_truth=torch.from_numpy(node_truth),
        edge_truth=torch.from_numpy(edge_truth),
    )
    return replace(dataset, graphs=graphs)


def _from_npz(name: str, path: Path) -> Dataset:
    """BA_2Motifs and Benzene: flat arrays, laid out like the store."""
    arrays = _arrays(path)
    needed = {"x", "edge_index", "y", "node_ptr", "edge_ptr", "node_gt"}
    if missing := needed - arrays.keys():
        raise UserError(f"{path} lacks the array {sorted(missing)[0]!r}")

    def tensor(key: str, kind: torch.dtype) -> Tensor:
        return torch.from_numpy(arrays[key]).to(kind)

    edge_truth = tensor("edge_gt", torch.bool) if "edge_gt" in arrays else _ring_edges(arrays)
    graphs = GraphStore(
        x=tensor("x", torch.float32),
        edge_index=tensor("edge_index", torch.int64),
        y=tensor("y", torch.int64),
        node_ptr=tensor("node_ptr", torch.int64),
        edge_ptr=tensor("edge_ptr", torch.int64),
        edge_attr=tensor("edge_attr", torch.float32) if "edge_attr" in arrays else None,
        node_truth=tensor("node_gt", torch.bool),
        edge_truth=edge_truth,
    )
    return Dataset(
        name,
        graphs,
        class_names=tuple(str(label) for label in np.unique(arrays["y"])),
        feature_names=_numbered(graphs.num_features),
        edge_feature_names=_numbered(graphs.num_edge_features),
    )


def _ring_edges(arrays: dict[str, NDArray[Any]]) -> Tensor:
    """Benzene marks atoms, with a column for every ring and for every union of rings.

    A bond is true when one ring, a column of six atoms, holds both its ends; the bond that joins
    two rings is not.
    """
    graphs = len(arrays["y"])
    nodes_of = np.repeat(np.arange(graphs), np.diff(arrays["node_ptr"]))
    edges_of = np.repeat(np.arange(graphs), np.diff(arrays["edge_ptr"]))
    ends = arrays["edge_index"].astype(np.int64) + arrays["node_ptr"][edges_of]
    columns = arrays["num_gt"].astype(np.int64)
    local = np.arange(len(nodes_of)) - arrays["node_ptr"][nodes_of]
    first = arrays["gt_ptr"][nodes_of] + local * columns[nodes_of]
    inside = np.zeros(len(edges_of), dtype=bool)
    for column in range(int(columns.max(initial=0))):
        there = column < columns[nodes_of]
        marked = np.zeros(len(nodes_of), dtype=bool)
        marked[there] = arrays["gt_flat"][first[there] + column]
        ring = np.bincount(nodes_of[marked], minlength=graphs) == 6
        inside |= (marked & ring[nodes_of])[ends].all(axis=0)
    return torch.from_numpy(inside)


def _checked(dataset: Dataset) -> Dataset:
    """Refuse what no model can be trained on."""
    graphs = dataset.graphs
    if graphs.y.min() != 0 or graphs.y.max() != dataset.num_classes - 1:
        raise UserError(f"{dataset.name}: the classes must be numbered 0, 1, ... without a gap")
    owner = torch.arange(len(graphs)).repeat_interleave(graphs.num_edges)
    if ((graphs.edge_index < 0) | (graphs.edge_index >= graphs.num_nodes[owner])).any():
        raise UserError(f"{dataset.name}: an edge names a node that its graph does not have")
    bad = ~graphs.x.isfinite().all(dim=1)
    if bad.any():
        node = int(bad.nonzero()[0])
        graph = int(torch.searchsorted(graphs.node_ptr, node, right=True))
        raise UserError(
            f"{dataset.name}: {int(bad.sum())} nodes have NaN, infinite or too large features, "
            f"the first in graph {graph}; clean the data"
        )
    if dataset.num_classes < 2:
        raise UserError(
            f"{dataset.name}: every graph has the label {dataset.class_names[0]}; "
            "a classifier needs at least two classes"
        )
    return dataset
