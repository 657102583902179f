"""Datasets known by name (the paper's, those with ground truth, registered ones); their files."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cores.errors import UserError, nearest
from cores.files import cache_folder, in_turn, make_folder


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
    source: str = "tu"
    """Its kind: text files in TU format, npz (flat arrays), or made by code: code, or nodes where
    those of one graph are classified; see data/datasets.py."""
    edge_truth: str = ""
    """File that marks the edges of the ground truth, line by line of the adjacency file."""

    @property
    def is_made(self) -> bool:
        """Tell whether it is made by code, and has no file."""
        return self.source in ("code", "nodes")

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
    DatasetSpec("BA_Shapes", source="nodes"),
    DatasetSpec("Tree_Cycles", source="nodes"),
)
DATASETS = {spec.name: spec for spec in _ROWS}
"""Every dataset that comes with the package, by name."""
PAPER_DATASETS = tuple(DATASETS)[:9]
"""The datasets of the paper, in the order of its tables."""
REGISTERED: dict[str, Callable[[], Iterable[Any]]] = {}
"""Loaders of the datasets that a user registered, by name."""
FILES = (
    *(".csv", ".tsv", ".parquet", ".sdf", ".smi", ".jsonl", ".ndjson"),
    *(".npz", ".pt", ".zip", ".gz"),
)
"""Endings of what can only be a file."""
_BY_FOLDED_NAME = {name.lower(): name for name in DATASETS} | {"ptc_fm": "PTC"}


def register_dataset(name: str, load: Callable[[], Iterable[Any]]) -> None:
    """Make a dataset known by a name, for commands and :func:`cores.load_dataset`.

    Args:
        name: What to call it, in any case.
        load: Returns its graphs: PyG ``Data`` or networkx graphs with labels, or a dataset.
    """
    known = _BY_FOLDED_NAME.get(name.lower())
    if known is not None:
        raise UserError(f"there is a dataset {known!r} already; choose another name")
    if not name.replace("-", "").replace("_", "").isalnum():
        raise UserError(f"a dataset's name has letters, digits, - and _, got {name!r}")
    REGISTERED[name] = load


def canonical_name(dataset: str) -> str:
    """A known dataset's own spelling; a path stays as it is.

    >>> canonical_name("mutag"), canonical_name("ptc_fm")
    ('MUTAG', 'PTC')
    """
    if not dataset.strip():
        raise UserError(f"the dataset's name is empty; known: {', '.join(DATASETS)}")
    by_folded_name = {name.lower(): name for name in REGISTERED} | _BY_FOLDED_NAME
    if dataset.lower() in by_folded_name:
        return by_folded_name[dataset.lower()]
    if os.sep in dataset or Path(dataset).exists():
        return dataset
    if Path(dataset).suffix.lower() in FILES:
        raise UserError(f"there is no file {dataset}")
    raise UserError(
        f"unknown dataset {dataset!r}; {nearest(dataset, [*DATASETS, *REGISTERED])} "
        "(or the path of a file: csv, tsv, parquet, sdf, smi, jsonl, npz, pt, TU zip or folder; "
        "in Python, graphs and SMILES are given as a list)"
    )


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
        source = "`data_root`" if given else "CORES_DATA"
        raise UserError(f"data folder {root} does not exist; set {source} to the right one")
    return root


def how_to_get(spec: DatasetSpec, root: Path | None) -> str | None:
    """Tell how to get the files of a dataset; None if they are in the folder."""
    places = _places(spec, root)
    if not places or any(path.exists() for path in places):
        return None
    downloaded = spec.source == "tu" and root is None
    return f"{'downloaded on first use to' if downloaded else 'put it at'} {places[0]}"


def dataset_path(spec: DatasetSpec, root: Path | None) -> Path:
    """The file or folder of a dataset; one of the TU collection is downloaded to the cache."""
    places = _places(spec, root)
    found = [path for path in places if path.exists()]
    if found:
        return found[0]
    if spec.source == "tu" and root is None:
        return _downloaded(spec, places[0])
    if spec.source == "tu":
        raise UserError(f"{root} has no {spec.name}; put it at {places[0]} or {places[2]}{os.sep}")
    raise UserError(
        f"{places[0]} is missing; put it there, or at FOLDER/other/{places[0].name} and set "
        "CORES_DATA to FOLDER"
    )


def _places(spec: DatasetSpec, root: Path | None) -> list[Path]:
    """List the places where the files of a dataset may be."""
    folder = root or cache_folder()
    if spec.is_made:
        return []
    if spec.source == "npz":
        return [folder / "other" / f"{spec.stem}.npz"]
    suffix = "_cleaned" if spec.cleaned else ""
    return [
        folder / f"tu{suffix}" / f"{spec.stem}.zip",
        folder / f"tu{suffix}" / spec.stem,
        folder / spec.stem / f"raw{suffix}",
    ]


def _downloaded(spec: DatasetSpec, path: Path) -> Path:
    """Download a dataset's zip from where PyG gets it; nobody finds half of one."""
    from torch_geometric.data import download_url
    from torch_geometric.datasets import TUDataset

    url = TUDataset.cleaned_url if spec.cleaned else TUDataset.url
    make_folder(path.parent)
    try:
        with in_turn(path), TemporaryDirectory(dir=path.parent) as folder:
            if not path.exists():  # else another process was first
                download_url(f"{url}/{spec.stem}.zip", folder, log=False)
                Path(folder, path.name).replace(path)
    except (OSError, HTTPException) as error:
        raise UserError(
            f"cannot download {spec.name} ({type(error).__name__}); put its zip at {path}, "
            f"or at FOLDER/{path.parent.name}/{path.name} and set CORES_DATA to FOLDER"
        ) from None
    return path
