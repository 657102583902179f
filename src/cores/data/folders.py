"""Where the files of a dataset are: a folder of the user's, the cache, or downloaded to it."""

import os
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

from cores.data.catalogue import DatasetSpec
from cores.errors import UserError
from cores.files import cache_folder, in_turn, make_folder


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
    """How to get the files of a dataset that are not in the folder; None if they are there."""
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
    """Where the files of a dataset may be."""
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
