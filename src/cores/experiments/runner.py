"""Many runs, in processes here or on a cluster; finished runs are never repeated."""

import multiprocessing
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from cores.config import RunConfig
from cores.data.datasets import data_folder
from cores.errors import UserError
from cores.experiments.cluster import on_cluster

ATTEMPTS = 3
"""How often a run may be in flight when a process dies before it counts as failed."""
WARM_UPS = "warm-ups"
"""Folder beside the run folders, in which runs that differ in the reward share their warm-ups."""


@dataclass(frozen=True)
class Outcome:
    """How one run ended."""

    config: RunConfig
    folder: Path
    failure: str | None = None
    """Why it failed; None when it finished."""


Job = Callable[[RunConfig], str | None]
"""Does a run in a worker; returns why it failed, None when it finished."""
Ended = Generator[tuple[RunConfig, str | None]]
"""Runs in the order in which they end, each with why it failed, None when it finished."""


def run_folder(root: Path, config: RunConfig) -> Path:
    """The folder of a configuration: readable, and unique by its key."""
    dataset = Path(config.dataset).stem
    name = f"{dataset}-{config.model}-{config.conv}-{config.preset}"
    return root / f"{name}-split{config.split}-seed{config.seed}-{config.key}"


def run_all(
    configs: Sequence[RunConfig],
    root: Path,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    device: str = "auto",
    data_root: Path | None = None,
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run every configuration into its folder under ``root``; a failed run does not stop the rest.

    With the address of a dask scheduler the runs go to its workers, who must see ``root`` and the
    data under the same paths; otherwise to processes on this machine.
    """
    runs = list(dict.fromkeys(configs))
    if scheduler is not None and (folder := data_folder(data_root)) is not None:
        data_root = folder.absolute()  # the workers have an environment of their own
    job = train_in_worker(root, device, data_root)
    if scheduler is None:
        ended = in_processes(runs, job, workers)
    else:
        ended = on_cluster(runs, job, scheduler)
    outcomes: list[Outcome] = []
    with closing(ended):
        for config, failure in ended:
            outcomes.append(Outcome(config, run_folder(root, config), failure))
            done(outcomes[-1])
    return outcomes


def in_processes(runs: Iterable[RunConfig], job: Job, workers: int) -> Ended:
    """Runs in a pool of processes; the next is asked for when one of them is free.

    A process that dies takes its pool with it: the pool is made anew, and the runs that were in
    flight go on from their checkpoints.
    """
    waiting, queue = iter(runs), deque[RunConfig]()
    deaths: Counter[RunConfig] = Counter()
    while True:
        in_flight: dict[Future[str | None], RunConfig] = {}
        pool = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), initializer=_die_with_parent
        )
        try:
            while True:
                while len(in_flight) < workers:
                    queue.extend([] if queue else islice(waiting, 1))
                    if not queue:
                        break
                    future = pool.submit(job, queue[0])
                    in_flight[future] = queue.popleft()
                if not in_flight:
                    return
                for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
                    failure = future.result()
                    yield in_flight.pop(future), failure
        except BrokenProcessPool:
            for config in in_flight.values():
                deaths[config] += 1
                if deaths[config] < ATTEMPTS:
                    queue.append(config)
                else:
                    yield config, f"its process was killed {ATTEMPTS} times (out of memory?)"
        finally:
            # Whatever ended the loop, nobody waits for runs in flight: they have checkpoints.
            for process in multiprocessing.active_children():
                process.terminate()
            pool.shutdown(cancel_futures=True)


def _die_with_parent() -> None:
    """Let a worker end when its parent is killed, lest it hold its run from the next command."""

    def wait_for_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_for_parent, daemon=True).start()


def train_in_worker(root: Path, device: str, data_root: Path | None) -> Job:
    """What a worker does with a run under ``root``."""
    return partial(_run, root=root.absolute(), device=device, data_root=data_root)


_alone = threading.Lock()


def _run(config: RunConfig, *, root: Path, device: str, data_root: Path | None) -> str | None:
    """Train in a worker process; returns why it failed, in one line."""
    from cores.experiments.run import train_run

    folder = run_folder(root, config)
    try:
        with _alone:  # torch's random numbers belong to the process, should it have more threads
            train_run(
                config,
                folder,
                device=device,
                data_root=data_root,
                resume=True,
                warm_ups=root / WARM_UPS,
            )
    except UserError as error:
        return str(error)
    except Exception as error:  # a fault of ours must not stop the other runs; it is reported
        return f"{type(error).__name__}: {error}"
    return None
