"""A scheduler that is reached by TLS, and what is told of one that is not reached."""

import gc
import logging
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dask
import pytest
from distributed import LocalCluster, Security

from cores.cli.commands import all_commands
from cores.errors import UserError
from cores.runs import cluster as clusters
from cores.runs.cluster import Certificates, on_cluster


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "PATIENCE", 0.5)


def made(folder: Path) -> Certificates:
    """A certificate that is its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, to make a certificate")
    folder.mkdir()
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1"
    options = ["-subj", "/CN=cores", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command.split(), *options], check=True, capture_output=True)
    return Certificates(tls_ca=cert, tls_cert=cert, tls_key=key)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return made(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def tls_cluster(certificates: Certificates) -> Iterator[LocalCluster]:
    """A scheduler and a worker, in threads, that speak to nobody without a certificate."""
    cert, key = str(certificates.tls_cert), str(certificates.tls_key)
    roles = {f"tls_{role}_cert": cert for role in ("scheduler", "worker", "client")}
    roles |= {f"tls_{role}_key": key for role in ("scheduler", "worker", "client")}
    security = Security(require_encryption=True, tls_ca_file=cert, **roles)
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tls",
        security=security,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster


def test_jobs_travel_by_tls(tls_cluster: LocalCluster, certificates: Certificates) -> None:
    address = tls_cluster.scheduler_address
    assert address.startswith("tls://")
    jobs = ["None", "'it fails'"]
    found = dict(on_cluster(jobs, eval, address, certificates))
    assert found == {"None": None, "'it fails'": "it fails"}
    settings = {
        "distributed.comm.tls.ca-file": str(certificates.tls_ca),
        "distributed.comm.tls.client.cert": str(certificates.tls_cert),
        "distributed.comm.tls.client.key": str(certificates.tls_key),
    }
    with dask.config.set(settings):
        assert dict(on_cluster(jobs, eval, address)) == found


@pytest.mark.usefixtures("impatient")
def test_a_stranger_is_not_let_in(
    tls_cluster: LocalCluster, certificates: Certificates, tmp_path: Path
) -> None:
    address = tls_cluster.scheduler_address
    with pytest.raises(UserError, match=r"needs certificates: give `tls_ca`, `tls_cert`"):
        next(on_cluster(["None"], eval, address))
    theirs = made(tmp_path / "theirs")
    for stranger in (theirs, replace(theirs, tls_ca=certificates.tls_ca)):
        with pytest.raises(UserError, match="no dask scheduler answers at tls"):
            next(on_cluster(["None"], eval, address, stranger))
    plain = address.replace("tls://", "tcp://")
    with pytest.raises(UserError, match="no dask scheduler answers at tcp"):
        next(on_cluster(["None"], eval, plain))


def test_certificates_that_cannot_be_used_are_told(
    certificates: Certificates, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"certificates need an address such as tls://head:8786"):
        next(on_cluster(["None"], eval, "tcp://127.0.0.1:9", certificates))
    (tmp_path / "noise.pem").write_text("no certificate")
    for path in (tmp_path / "nothing.pem", tmp_path / "noise.pem"):
        wrong = Certificates(certificates.tls_ca, path, certificates.tls_key)
        with pytest.raises(UserError, match="cannot use the certificates in"):
            next(on_cluster(["None"], eval, "tls://127.0.0.1:9", wrong))


ANSWERS = {
    "nobody": None,
    "silence": b"",
    "a page": b"HTTP/1.1 400 Bad Request\r\nServer: none\r\n\r\n",
    "zeros": bytes(100),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_scheduler_that_does_not_answer_is_told_in_a_line_and_leaves_nothing_behind(
    answer: bytes | None, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        connections = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:  # closed
                    return
                connections.append(connection)
                connection.sendall(answer or b"")

        if answer is None:
            server.close()
        else:
            threading.Thread(target=serve, daemon=True).start()
        before = threading.active_count()
        with pytest.raises(UserError, match=rf"no dask scheduler answers at {address} \(") as told:
            next(on_cluster(["None"], eval, address))
        assert "\n" not in str(told.value)
        assert threading.active_count() == before
        if answer is not None:
            server.shutdown(socket.SHUT_RDWR)  # ends the thread
    for connection in connections:
        connection.close()
    gc.collect()  # a client that is still there would complain
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


SCHEDULER = """
import asyncio
from distributed import Scheduler

async def serve():
    async with Scheduler(host="tcp://127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(serve())
"""


@pytest.mark.usefixtures("impatient")
def test_a_scheduler_that_is_lost_is_told_in_a_line(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    command = [sys.executable, "-c", SCHEDULER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        threading.Timer(1, process.kill).start()  # while the job waits for a worker
        with pytest.raises(UserError, match=rf"lost the scheduler at {address}; run again"):
            next(on_cluster(["None"], eval, address))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "Traceback" not in capfd.readouterr().err


def test_every_command_that_has_a_scheduler_takes_its_certificates() -> None:
    flags = [command.parser().flags.values() for command in all_commands()]
    with_scheduler = [set(found) for found in flags if "--scheduler" in found]
    assert len(with_scheduler) == 2
    for found in with_scheduler:
        assert found >= {"--tls-ca", "--tls-cert", "--tls-key"}
