"""Predictions for folders of files: a file for each, here or on a cluster."""

import gzip
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

from cores.data.inputs import sources
from cores.errors import UserError
from cores.runs import predict
from cores.runs.inputs import PredictOptions
from cores.runs.predict import predict_file, predict_folder
from cores.runs.records import record_fields

Table = Callable[..., str]
PLAIN = PredictOptions()
pytestmark = pytest.mark.usefixtures("small_chunks")


@pytest.fixture
def folder(tmp_path: Path, molecule_table: Table) -> Path:
    """Four files of a folder: one packed, one without rows."""
    path = tmp_path / "parts"
    path.mkdir()
    (path / "a.csv").write_text(molecule_table(20))
    (path / "b.csv.gz").write_bytes(gzip.compress(molecule_table(10, labelled=False).encode()))
    (path / "c.csv").write_text("id,smiles\nx,C(\n")
    (path / "d.csv").write_text("id,smiles\n")
    (path / "_SUCCESS").touch()
    return path


def folder_content(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.name[0] != "."}


def test_a_folder_of_files_becomes_a_folder_of_files(
    molecule_run: Path, folder: Path, tmp_path: Path
) -> None:
    out, files = tmp_path / "out", list[int]()
    summary = predict_folder(molecule_run, folder, out, PLAIN, device="cpu", advance=files.append)
    assert (summary.records, summary.errors, sum(files)) == (31, 1, 4)
    assert summary.first_errors == ("x: line 2: invalid SMILES 'C('",)
    found = folder_content(out)
    assert sorted(found) == ["a.csv", "b.csv", "c.csv", "d.csv"]
    predict_file(molecule_run, str(folder / "a.csv"), tmp_path / "alone.csv", PLAIN, device="cpu")
    assert found["a.csv"] == (tmp_path / "alone.csv").read_bytes()
    assert found["d.csv"].decode() == ",".join(record_fields(molecules=True, committee=True)) + "\n"
    (out / "a.csv").write_text("left alone")
    (out / "b.csv").unlink()
    assert predict_folder(molecule_run, folder, out, PLAIN, device="cpu") == summary
    assert folder_content(out) == {**found, "a.csv": b"left alone"}
    with pytest.raises(UserError, match="out holds other files or predictions; choose another"):
        predict_folder(molecule_run, folder, out, PredictOptions(alpha=0.3), device="cpu")


def test_a_folder_is_never_its_own_output(molecule_run: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is the input; choose another `out`"):
        predict_folder(molecule_run, folder, folder, PLAIN, device="cpu")
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"smiles\nC\n"))
    with pytest.raises(UserError, match=r"files that differ only in .gz"):
        predict_folder(molecule_run, folder, tmp_path / "out", PLAIN, device="cpu")


@pytest.mark.parametrize("summary", ["[]", "{}", '{"records": "x", "errors": 0}', "null"])
def test_a_damaged_summary_is_named(
    molecule_run: Path, folder: Path, tmp_path: Path, summary: str
) -> None:
    predict_folder(molecule_run, folder, tmp_path / "out", PLAIN, device="cpu")
    (tmp_path / "out" / ".a.csv.json").write_text(summary)
    with pytest.raises(UserError, match=r"\.a\.csv\.json is damaged; delete it"):
        predict_folder(molecule_run, folder, tmp_path / "out", PLAIN, device="cpu")


def test_a_bad_file_of_a_folder_is_named(molecule_run: Path, folder: Path, tmp_path: Path) -> None:
    (folder / "bad.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"bad.csv: .*bad.csv is not UTF-8 text"):
        predict_folder(molecule_run, folder, tmp_path / "out", PLAIN, device="cpu")


@pytest.fixture
def cluster(quick_workers: None) -> Iterator[LocalCluster]:
    """A real scheduler with two worker processes."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster


def test_a_killed_worker_of_a_cluster_loses_nothing(
    molecule_run: Path,
    folder: Path,
    tmp_path: Path,
    cluster: LocalCluster,
    molecule_table: Table,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(predict, "CHUNK", sources.CHUNK)  # as the workers have it
    for name in "efgh":
        (folder / f"{name}.csv").write_text(molecule_table(400))
    out = tmp_path / "there"

    def kill() -> None:
        deadline = time.monotonic() + 60
        while not list(out.glob("*.pieces")) and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    address = cluster.scheduler_address
    there = predict_folder(molecule_run, folder, out, PLAIN, device="cpu", scheduler=address)
    killer.join()
    here = predict_folder(molecule_run, folder, tmp_path / "here", PLAIN, device="cpu")
    assert there == here
    assert folder_content(out) == folder_content(tmp_path / "here")


def test_a_file_that_a_killed_worker_had_joined_is_done(
    molecule_run: Path, folder: Path, tmp_path: Path
) -> None:
    """Killed after the output was there and before its pieces were gone."""
    out = tmp_path / "a.csv"
    out.write_text("whole")
    (tmp_path / "a.csv.pieces").mkdir()
    assert predict._predict_partition(molecule_run, PLAIN, "cpu", (folder / "a.csv", out)) is None
    assert not (tmp_path / "a.csv.pieces").exists()
