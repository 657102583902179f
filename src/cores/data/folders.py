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
        source = "--data-root" if given else "CORES_DATA"
        raise UserError(f"data folder {root} does not exist; set {source} to the right one")
    return root


def tu_path(spec: DatasetSpec, root: Path | None) -> Path:
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


def npz_path(file: str, root: Path | None) -> Path:
    """A file of flat arrays, which must be there."""
    path = (root or cache_folder()) / "other" / file
    if not path.exists():
        raise UserError(
            f"{path} is missing; put it there, or at FOLDER/other/{file} and set CORES_DATA to "
            "FOLDER"
        )
    return path


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
