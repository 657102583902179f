"""Many runs, in processes here or on a cluster; finished runs are never repeated."""

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from cores.config import RunConfig
from cores.data.catalogue import data_folder
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError, out_of_memory
from cores.files import HeldError, is_held, make_folder, unlinked, write_atomically
from cores.runs.cluster import Certificates, on_cluster
from cores.runs.scripts import in_worker
from cores.runs.sharing import shared_gpu

ATTEMPTS = 3
"""Deaths of processes after which their run counts as failed."""
STARTING = 30
"""Seconds that a new process may need until it can be ended."""
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


Item = TypeVar("Item")
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
        if scheduler is None:
            ended, sharing = in_processes(ready, job, workers), min(workers, len(ready))
        else:
            ended, sharing = on_cluster(ready, job, scheduler, certificates), 1
        with shared_gpu(device, sharing), closing(ended):
            for config, failure in ended:
                folder = run_folder(root, config)
                if failure == HELD:  # another process came first, and may have ended since
                    held.append(config)
                else:
                    outcomes.append(Outcome(config, folder, failure))
                    done(outcomes[-1])
        left = held
    return outcomes


def in_processes(
    items: Iterable[Item], job: Callable[[Item], str | None], workers: int
) -> Generator[tuple[Item, str | None]]:
    """Do a job for every item in processes; each comes back as it ends, with why it failed.

    The next is asked for when a process is free. One whose process dies is begun again, and a run
    then goes on from its checkpoint.
    """
    waiting, queue = iter(items), deque[Item]()
    deaths: Counter[Item] = Counter()
    idle: list[_Worker] = []
    busy: dict[Future[str | None], tuple[Item, _Worker]] = {}
    try:
        while True:
            while len(busy) < workers:
                queue.extend([] if queue else islice(waiting, 1))
                if not queue:
                    break
                worker = idle.pop() if idle else _Worker()
                with suppress(BrokenProcessPool):  # it died while it had nothing to do
                    busy[worker.start(job, queue[0])] = queue[0], worker
                    queue.popleft()
            if not busy:
                return
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                item, worker = busy.pop(future)
                try:
                    failure = future.result()
                    idle.append(worker)
                except BrokenProcessPool:
                    deaths[item] += 1
                    if deaths[item] < ATTEMPTS:
                        queue.append(item)
                        continue
                    failure = f"its process was killed {ATTEMPTS} times (out of memory?)"
                yield item, failure
    finally:
        # Whatever ended the loop, nobody waits for runs in flight: they have checkpoints.
        for worker in (*idle, *(worker for _, worker in busy.values())):
            worker.end()


class _Worker:
    """One process in a pool of its own: a pool of several cannot tell whose run killed it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, context, initializer=_die_with_parent)
        # A new process inherits the mask: Ctrl-C is for us alone, who then end the workers.
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._pid = self._pool.submit(os.getpid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, signals)

    def start(self, job: Callable[[Item], str | None], item: Item) -> Future[str | None]:
        return self._pool.submit(*in_worker(job, item))

    def end(self) -> None:
        """End the process, whatever it does; one that is just starting is waited for."""
        with suppress(BrokenProcessPool, ProcessLookupError, TimeoutError):  # it has ended already
            os.kill(self._pid.result(timeout=STARTING), signal.SIGTERM)
        self._pool.shutdown(wait=False, cancel_futures=True)


def _die_with_parent() -> None:
    """Let a worker end when its parent is killed, lest it keep its run locked."""

    def wait_for_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_for_parent, daemon=True).start()


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
