"""Any dataset, by name or by path."""

from pathlib import Path

from cores.data.arrays import from_npz, with_edge_truth
from cores.data.catalogue import DATASETS, DatasetSpec, canonical_name
from cores.data.dataset import Dataset, checked, numbered
from cores.data.features import from_tu
from cores.data.folders import data_folder, dataset_path
from cores.data.synthetic import ba_motifs
from cores.data.tu import read_tu
from cores.errors import UserError
from cores.files import cache_folder


def load_dataset(dataset: str, data_root: str | Path | None = None) -> Dataset:
    """Load a dataset by name (any case), or any zip or folder in TU format by path.

    Named datasets are read from ``data_root``, else from the folder that the environment variable
    ``CORES_DATA`` names, else, those of the TU collection, downloaded by PyG to the user's cache
    folder. ``motifs`` is generated and needs no file.

    >>> load_dataset("motifs").class_names
    ('cycle', 'house')
    """
    name = canonical_name(dataset)
    if name not in DATASETS:
        return checked(_from_path(Path(name)))
    spec = DATASETS[name]
    if spec.source == "code":
        graphs = ba_motifs()
        return Dataset(name, graphs, ("cycle", "house"), numbered(graphs.num_features))
    root = data_folder(data_root)
    path = dataset_path(spec, root)
    if spec.source == "npz":
        try:
            return checked(from_npz(name, path))
        except UserError:
            raise
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise UserError(f"{path} does not hold what {name} needs ({reason})") from None
    records = read_tu(path)
    loaded = from_tu(spec, records)
    truth = (root or cache_folder()) / "other" / spec.edge_truth
    if spec.edge_truth and truth.exists():
        loaded = with_edge_truth(loaded, records, truth)
    return checked(loaded)


def _from_path(path: Path) -> Dataset:
    if not path.exists():
        raise UserError(f"dataset path {path} does not exist")
    records = read_tu(path)
    # Unknown attributes are measurements more often than not: put them on one scale.
    attributes = tuple(range(records.attributes.shape[1]))
    return from_tu(DatasetSpec(str(path), continuous=attributes), records)
