"""Many runs, in processes here or on a cluster; finished runs are never repeated."""

import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cores.config import RunConfig
from cores.data.catalogue import data_folder
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError, out_of_memory
from cores.files import HeldError, is_held, make_folder, unlinked, write_atomically
from cores.runs.cluster import Certificates
from cores.runs.workers import in_workers

ERROR = "error.txt"
"""File in the folder of a run that failed by a fault of the program: where."""
HELD = "this run is locked by another process; wait for it"
"""Failure of a run that another process has locked."""
WARM_UPS = "warm-ups"
"""Folder beside the run folders, in which runs that differ in the reward share their warm-ups."""


@dataclass(frozen=True)
class Outcome:
    """The end of one run."""

    config: RunConfig
    folder: Path
    failure: str | None = None
    """Reason of the failure; None when it finished."""


Job = Callable[[RunConfig], str | None]
"""Does a run in a worker; returns why it failed, None when it finished."""


def run_folder(root: Path, config: RunConfig) -> Path:
    """The folder of a configuration: readable, and unique by its key."""
    dataset = Path(config.dataset).stem
    name = f"{dataset}-{config.model}-{config.conv}-{config.preset}"
    return root / f"{name}-split{config.split}-seed{config.seed}-{config.key}"


def has_fault(folder: Path) -> bool:
    """Tell whether the run there failed by a fault of the program."""
    return (folder / ERROR).exists()


def run_all(
    configs: Sequence[RunConfig],
    root: Path,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    certificates: Certificates | None = None,
    device: str = "auto",
    data_root: Path | None = None,
    columns: ColumnNames | None = None,
    done: Callable[[Outcome], None] = lambda outcome: None,
    waits: Callable[[int], None] = lambda runs: None,
) -> list[Outcome]:
    """Run every configuration into its folder under ``root``; a failed run does not stop the rest.

    With the address of a dask scheduler the runs go to its workers, who must see ``root`` and the
    data under the same paths; otherwise to processes on this machine. ``columns`` names those of a
    file. Runs locked by another process come last; ``waits`` is called with their number when no
    others are left.
    """
    if scheduler is not None and (folder := data_folder(data_root)) is not None:
        data_root = folder.absolute()  # the workers have an environment of their own
    job = train_in_worker(root, device, data_root, columns)
    outcomes: list[Outcome] = []
    left = list(dict.fromkeys(configs))
    while left:
        held = [config for config in left if is_held(run_folder(root, config))]
        ready = [config for config in left if config not in held]
        if not ready:
            waits(len(held))
            while all(is_held(run_folder(root, config)) for config in held):
                time.sleep(1)
            continue
        at_once = min(workers, len(ready))
        with in_workers(ready, job, device, at_once, scheduler, certificates) as ended:
            for config, failure in ended:
                folder = run_folder(root, config)
                if failure == HELD:  # another process came first, and may have ended since
                    held.append(config)
                else:
                    outcomes.append(Outcome(config, folder, failure))
                    done(outcomes[-1])
        left = held
    return outcomes


def train_in_worker(
    root: Path,
    device: str,
    data_root: Path | None,
    columns: ColumnNames | None = None,
    folder: Callable[[Path, RunConfig], Path] = run_folder,
) -> Job:
    """Make the job that trains a run in a worker, in its folder under ``root``."""
    return partial(
        _run,
        root=root.absolute(),
        device=device,
        data_root=data_root,
        columns=columns,
        folder_of=folder,
    )


_alone = threading.Lock()


def _run(
    config: RunConfig,
    *,
    root: Path,
    device: str,
    data_root: Path | None,
    columns: ColumnNames | None,
    folder_of: Callable[[Path, RunConfig], Path],
) -> str | None:
    """Train in a worker process; returns why it failed, in one line."""
    from cores.runs.run import train_run

    folder = folder_of(root, config)
    report = folder / ERROR
    try:
        unlinked(folder)
        report.unlink(missing_ok=True)
        with _alone:  # torch's random numbers belong to the process, should it have more threads
            train_run(
                config,
                folder,
                device=device,
                data_root=data_root,
                columns=columns,
                resume=True,
                warm_ups=unlinked(root / WARM_UPS),
            )
    except HeldError:
        return HELD
    except UserError as error:
        return str(error)
    except Exception as error:  # a fault of ours must not stop the other runs; it is reported
        if (told := out_of_memory(error)) is not None:
            return told
        with suppress(UserError):  # the disk may be what failed
            make_folder(folder)  # the run may not have come so far
            write_atomically(report, traceback.format_exc().encode())
        return f"{type(error).__name__}: {error} (more in {report})"
    return None
