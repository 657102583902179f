"""The folder of a run: its files, and what made it."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from cores import __version__
from cores.config import RunConfig
from cores.data.catalogue import DATASETS, REGISTERED
from cores.data.dataset import Dataset
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError
from cores.files import LOCK, is_leftover, read_json, write_json

CONFIG, MODEL, METRICS = "config.json", "model.safetensors", "metrics.json"
CARD = "README.md"
PROMISE = "promise.json"
"""The promise under which the sufficiency of a model was set."""
FORMAT = 2
"""Format of run folders; others are refused."""


@dataclass(frozen=True)
class Identity:
    """The content of ``config.json``: what was run, and on which data."""

    folder: Path
    config: RunConfig
    schema: Mapping[str, Any]
    """Names of the data, as plain data."""
    place: str | None
    """Path of the data, if they are not known by name."""
    columns: ColumnNames
    """The columns of the data that were read."""
    division: str | None
    """Stands for the parts that the data give."""
    data: Any = None
    """Facts of the data for the model card, beside the schema."""

    @classmethod
    def read(cls, folder: Path) -> "Identity":
        """Read it from the folder of a run."""
        known = _read(folder)
        place, columns = known.get("source"), known.get("columns") or {}
        if not isinstance(place, str | None):
            raise UserError(f"{folder / CONFIG} does not name its dataset")
        names = ("smiles", "label", "id", "split")
        if not isinstance(columns, dict) or not all(
            isinstance(columns.get(name), str | None) for name in names
        ):
            raise UserError(f"{folder / CONFIG} does not name the columns of its data")
        return cls(
            folder,
            RunConfig.from_settings(known["config"]),
            known["schema"],
            place,
            ColumnNames(**{name: columns.get(name) for name in names}),
            known.get("division"),
            known.get("data"),
        )

    @property
    def source(self) -> str:
        """The dataset of the run: its name, or the whole path that it was read from.

        The folder may have been moved, or the data.
        """
        name = self.config.dataset
        if self.place is not None and not Path(self.place).exists():
            raise UserError(
                f"the data of the run in {self.folder} are no longer at {self.place}; say where "
                "with `dataset`, or give an input"
            )
        if self.place is None and name not in (*DATASETS, *REGISTERED):
            raise UserError(
                f"the run in {self.folder} does not say where its data are, and {name!r} is no "
                "known dataset; give a `dataset` or an input, or import what registers it"
            )
        return self.place or name

    def check_data(self, dataset: Dataset) -> None:
        """Refuse other data, or other parts, than the run was started with."""
        for found, known, what in (
            (dataset.fingerprint, self.schema.get("fingerprint"), "dataset"),
            (dataset.division, self.division, "split column"),
        ):
            if found != known:
                raise UserError(
                    f"the {what} has changed since the run in {self.folder} was started; choose "
                    "another `out`"
                )


def write_identity(
    out: Path,
    config: RunConfig,
    schema: Mapping[str, Any],
    device: torch.device,
    place: Path | None = None,
    columns: Mapping[str, Any] | None = None,
    division: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Write ``config.json``: what was run, on which data, by which code, on which machine.

    The last four arguments are those of :class:`Identity`.
    """
    identity = {
        "format": FORMAT,
        "config": config.settings,
        "key": config.key,
        "schema": schema,
        "source": None if place is None else str(place),
        "columns": columns,
        "division": division,
        "data": data,
        "version": __version__,
        "commit": commit(),
        "machine": machine_of(device),
    }
    write_json(out / CONFIG, identity)


def machine_of(device: torch.device) -> str:
    """Name the kind of machine that a device is."""
    return "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device)


@cache
def commit() -> str | None:
    """Find the commit of this code in a checkout; CORES_COMMIT names it elsewhere."""
    here = Path(__file__).resolve().parents[3]
    if (here / ".git").exists() and shutil.which("git"):
        head = _git(here, "rev-parse", "--short=12", "HEAD")
        # Only the package counts: rows that are added to results/ change nothing of a run.
        changed = _git(here, "status", "--porcelain", "--", "src")
        if head:
            return f"{head}-dirty" if changed else head
    return os.environ.get("CORES_COMMIT")


def _git(repository: Path, *arguments: str) -> str:
    """Run git; returns what it prints, nothing where it fails."""
    asked = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() if asked.returncode == 0 else ""


def is_finished(
    out: Path, config: RunConfig, resume: bool, columns: Mapping[str, Any] | None = None
) -> bool:
    """Refuse to write over anything else; returns whether the run has finished already."""
    if not out.exists():
        return False
    if not out.is_dir():
        raise UserError(f"`out` {out} is a file; name a folder")
    if not (out / CONFIG).exists():
        strange = sorted(
            path.name for path in out.iterdir() if path.name != LOCK and not is_leftover(path)
        )
        if strange:
            raise UserError(
                f"{out} is not empty and holds no run (there is {strange[0]}); choose another `out`"
            )
        return False
    known = _read(out)
    if known["config"] != config.settings:
        different = _difference(known["config"], config.settings)
        raise UserError(f"{out} holds another run ({different}); choose another `out`")
    if known.get("columns") != columns:
        raise UserError(f"{out} holds a run on other columns of the data; choose another `out`")
    if not resume:
        raise UserError(
            f"{out} already holds this run; go on with resume=True or choose another `out`"
        )
    return (out / METRICS).exists() and (out / MODEL).exists()


def write_promise(out: Path, promise: Mapping[str, Any] | None) -> None:
    """Write what is promised of a model, or remove what was promised of an earlier one."""
    if promise is None:
        (out / PROMISE).unlink(missing_ok=True)
    else:
        write_json(out / PROMISE, promise)


def _read(out: Path) -> dict[str, Any]:
    if not (out / CONFIG).exists():
        raise UserError(f"{out} holds no run: {CONFIG} is missing")
    identity = read_json(out / CONFIG)
    if isinstance(identity, dict) and identity.get("format") != FORMAT and "version" in identity:
        raise UserError(
            f"{out} was written by version {str(identity['version'])[:20]} of this program, "
            f"this is {__version__}; train the model again, or load it with that version"
        )
    if not isinstance(identity, dict) or not all(
        isinstance(identity.get(name), dict) for name in ("config", "schema")
    ):
        raise UserError(f"{out / CONFIG} is not a run's configuration")
    settings = identity["config"]
    if "ppo" in settings and "committee" not in settings and settings.get("preset") == "default":
        raise UserError(f"the model in {out} was trained without a committee; train it again")
    return identity


def _difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Name the first setting in which two configurations differ."""
    for name in here:
        old, new = there.get(name), here[name]
        if old != new:
            if isinstance(old, Mapping) and isinstance(new, Mapping):
                return f"{name}.{_difference(old, new)}"
            return f"{name} is {old} there and {new} here"
    return "more settings there"
