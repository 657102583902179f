"""Jobs on the workers of a dask scheduler.

Whoever reaches a scheduler without TLS can run code on its workers (SECURITY.md).
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cores.errors import UserError
from cores.runs.scripts import in_worker

if TYPE_CHECKING:
    from distributed import Security

PATIENCE = 10
"""Seconds to wait for a scheduler's answer."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Certificates:
    """Files in PEM format by which we and a scheduler know each other."""

    tls_ca: Path
    """The authority that signed the certificates of all."""
    tls_cert: Path
    tls_key: Path


def on_cluster(
    items: Sequence[Item],
    job: Callable[[Item], str | None],
    address: str,
    certificates: Certificates | None = None,
) -> Generator[tuple[Item, str | None]]:
    """Do a job for every item on a cluster; each comes back as it ends, with why it failed.

    The scheduler gives the job of a worker that dies to another one, three times by its own
    default. For an address with tls:// the certificates are the given ones, else those that dask's
    own configuration names.
    """
    try:
        from distributed import Client
    except ImportError:
        raise UserError("`scheduler` needs dask: pip install 'cores-gnn[cluster]'") from None
    security = _security(address, certificates)
    _check_answer(address, security)
    try:
        client = Client(address, timeout=PATIENCE, security=security, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:  # it has ended since
        raise _no_answer(address, error) from None
    with _quiet(), client:
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence dask, which logs tracebacks when a scheduler is lost; we tell it in a line."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _security(address: str, certificates: Certificates | None) -> "Security":
    """Find the certificates for an address, or refuse it."""
    from distributed import Security
    from distributed.comm.addressing import parse_address, parse_host_port

    try:
        protocol, place = parse_address(address)
        parse_host_port(place)
    except ValueError:
        raise UserError(
            f"`scheduler` takes an address such as tcp://head:8786, got {address!r}"
        ) from None
    if certificates is not None and protocol != "tls":
        raise UserError(f"certificates need an address such as tls://head:8786, got {address!r}")
    given: dict[str, Any] = {}
    if certificates is not None:
        given = {
            "tls_ca_file": str(certificates.tls_ca),
            "tls_client_cert": str(certificates.tls_cert),
            "tls_client_key": str(certificates.tls_key),
        }
    security = Security(require_encryption=True, **given) if protocol == "tls" else Security()
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except (OSError, ssl.SSLError) as error:  # no such file, or not one of this kind
        reason = error.strerror or error
        raise UserError(
            f"cannot use the certificates in `tls_ca`, `tls_cert` and `tls_key`: {reason}"
        ) from None
    if protocol == "tls" and context is None:
        raise UserError(
            f"{address} needs certificates: give `tls_ca`, `tls_cert` and `tls_key`, or name them "
            "in dask's configuration"
        )
    return security


def _check_answer(address: str, security: "Security") -> None:
    """Refuse an address where no scheduler answers.

    Asked apart, in a loop of our own that ends with the question: a client that was never connected
    tries on in the background, waits for bytes that no scheduler sent, and complains at exit.
    """
    try:
        with ThreadPoolExecutor(1) as thread:  # a notebook has a loop of its own in this one
            thread.submit(asyncio.run, _identity(address, security)).result()
    except Exception as error:  # anything can come from what is no scheduler
        raise _no_answer(address, error) from None


async def _identity(address: str, security: "Security") -> Any:
    from distributed.core import rpc

    arguments = security.get_connection_args("client")
    async with (
        asyncio.timeout(PATIENCE),
        rpc(address, timeout=PATIENCE, connection_args=arguments) as scheduler,
    ):
        return await scheduler.identity()


def _no_answer(address: str, error: Exception) -> UserError:
    return UserError(
        f"no dask scheduler answers at {address} ({type(error).__name__}); start one as "
        "docs/predict.md shows"
    )
