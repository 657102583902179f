"""Many runs in a pool of processes; finished runs are never repeated."""

import multiprocessing
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from cores.config import RunConfig
from cores.errors import UserError

ATTEMPTS = 3
"""How often a run may be in flight when a process dies before it counts as failed."""


@dataclass(frozen=True)
class Outcome:
    """How one run ended."""

    config: RunConfig
    folder: Path
    failure: str | None = None
    """Why it failed; None when it finished."""


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
    device: str = "auto",
    data_root: Path | None = None,
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run every configuration into its folder under ``root``; a failed run does not stop the rest.

    A process that dies takes its pool with it: the pool is made anew, and the runs that were in
    flight go on from their checkpoints.
    """
    outcomes: list[Outcome] = []
    queue = deque(dict.fromkeys(configs))
    deaths: Counter[RunConfig] = Counter()

    def close(config: RunConfig, failure: str | None) -> None:
        outcomes.append(Outcome(config, run_folder(root, config), failure))
        done(outcomes[-1])

    while queue:
        in_flight: dict[Future[str | None], RunConfig] = {}
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
        try:
            while queue or in_flight:
                while queue and len(in_flight) < workers:
                    folder = run_folder(root, queue[0])
                    future = pool.submit(_run, queue[0], folder, device, data_root)
                    in_flight[future] = queue.popleft()
                for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
                    close(in_flight[future], future.result())
                    del in_flight[future]
        except BrokenProcessPool:
            for config in in_flight.values():
                deaths[config] += 1
                if deaths[config] < ATTEMPTS:
                    queue.append(config)
                else:
                    close(config, f"its process was killed {ATTEMPTS} times (out of memory?)")
        finally:
            # Whatever ended the loop, nobody waits for runs in flight: they have checkpoints.
            for process in multiprocessing.active_children():
                process.terminate()
            pool.shutdown(cancel_futures=True)
    return outcomes


def _run(config: RunConfig, folder: Path, device: str, data_root: Path | None) -> str | None:
    """Train in a worker process; returns why it failed, in one line."""
    from cores.experiments.run import train_run

    try:
        train_run(config, folder, device=device, data_root=data_root, resume=True)
    except UserError as error:
        return str(error)
    except Exception as error:  # a fault of ours must not stop the other runs; it is reported
        return f"{type(error).__name__}: {error}"
    return None
