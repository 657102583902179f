"""Worker processes: a job for every item, here or on a cluster, and one GPU for all of them."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

from cores.runs.cluster import Certificates, on_cluster
from cores.runs.scripts import in_worker

ATTEMPTS = 3
"""Deaths of processes after which their item counts as failed."""
STARTING = 30
"""Seconds that a new process may need until it can be ended."""
CONTROL = "nvidia-cuda-mps-control"
"""The program that starts and ends NVIDIA's multi-process service; it comes with the driver."""
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
PATIENCE = 30
"""Seconds for the service to start or to end."""
PROBE = """
from ctypes import CDLL, byref, c_void_p
cuda, context = CDLL("libcuda.so.1"), c_void_p()
raise SystemExit(cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
"""
"""Fails where a process cannot use the GPU, without waiting for torch."""

Item = TypeVar("Item")


@contextmanager
def in_workers(
    items: Iterable[Item],
    job: Callable[[Item], str | None],
    device: str,
    workers: int,
    scheduler: str | None = None,
    certificates: Certificates | None = None,
) -> Iterator[Iterator[tuple[Item, str | None]]]:
    """Do a job for every item in processes that may share a GPU, or on a cluster's workers.

    Each item comes back as its job ends, with why it failed.
    """
    if scheduler is None:
        with shared_gpu(device, workers), closing(in_processes(items, job, workers)) as ended:
            yield ended
    else:
        with closing(on_cluster(list(items), job, scheduler, certificates)) as ended:
            yield ended


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


@contextmanager
def shared_gpu(device: str, processes: int) -> Iterator[None]:
    """Let processes that begin in this context use a GPU at the same time, if the driver can.

    Without the multi-process service they take turns: while one of them waits for Python, no other
    may compute. One that runs already is used as it is. Where it does not work, there is a warning.
    """
    if processes == 1 or not _can_share(device):
        yield
        return
    # In the usual folder for such things, not the user's: a socket's path is short.
    with tempfile.TemporaryDirectory(prefix="cores-mps-") as folder:
        service = os.environ | {PIPES: folder, LOGS: str(Path(folder) / "logs")}
        if failure := _start(service):
            slow = "processes take turns on the GPU, which is slow"
            _warn(f"{slow}: {CONTROL} does not work ({failure})")
            yield
            return
        os.environ[PIPES] = folder
        try:
            yield
        finally:
            del os.environ[PIPES]
            _end(service)


def _can_share(device: str) -> bool:
    """Tell whether there is a GPU, and a service that can be started and nobody has set up."""
    if device == "cpu" or PIPES in os.environ or shutil.which(CONTROL) is None:
        return False
    import torch

    return torch.cuda.is_available()


def _start(service: Mapping[str, str]) -> str | None:
    """Start the service, and see that it works; returns why it does not."""
    try:
        _call([CONTROL, "-d"], service)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    try:
        _call([sys.executable, "-c", PROBE], service)
    except subprocess.SubprocessError as error:
        _end(service)
        return str(error)
    return None


def _end(service: Mapping[str, str]) -> None:
    try:
        _call([CONTROL], service, b"quit -t 5\n")
    except (OSError, subprocess.SubprocessError) as error:
        _warn(f"{CONTROL} did not end: {error}")


def _call(command: list[str], service: Mapping[str, str], said: bytes | None = None) -> None:
    subprocess.run(
        command, env=service, input=said, check=True, capture_output=True, timeout=PATIENCE
    )


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)
