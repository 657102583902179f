"""Jobs on the workers of a dask scheduler."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, as_completed
from typing import TypeVar

from cores.errors import UserError
from cores.runs.scripts import in_worker

PATIENCE = 10
"""Seconds to wait for a scheduler's answer."""

Item = TypeVar("Item")


def on_cluster(
    items: Sequence[Item], job: Callable[[Item], str | None], address: str
) -> Generator[tuple[Item, str | None]]:
    """Do a job for every item on a cluster; each comes back as it ends, with why it failed.

    The scheduler gives the job of a worker that dies to another one, three times by its own
    default.
    """
    try:
        from distributed import Client
        from distributed.comm.addressing import parse_address, parse_host_port
    except ImportError:
        raise UserError("`scheduler` needs dask: pip install 'cores-gnn[cluster]'") from None
    try:
        parse_host_port(parse_address(address)[1])
    except ValueError:
        raise UserError(
            f"`scheduler` takes an address such as tcp://head:8786, got {address!r}"
        ) from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:  # a timeout, too, and what it cannot speak
        raise UserError(
            f"no dask scheduler answers at {address} ({type(error).__name__}); "
            "start one with: dask scheduler"
        ) from None
    with client:
        executor = client.get_executor(pure=False)
        try:
            futures = {executor.submit(*in_worker(job, item)): item for item in items}
            for future in as_completed(futures):
                try:
                    failure = future.result()
                except CancelledError:
                    raise UserError(
                        f"lost the scheduler at {address}; run again to continue"
                    ) from None
                except Exception as error:  # of the worker: killed, or without our package
                    failure = f"{type(error).__name__}: {error}"
                yield futures[future], failure
        finally:
            executor.shutdown(wait=False)  # cancels what has not begun
