"""Pieces of a prediction: what is done is never lost, and joined only where it belongs."""

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError
from cores.runs import records
from cores.runs.inputs import PredictOptions
from cores.runs.opened import Run
from cores.runs.predict import predict_file

Table = Callable[..., str]
PLAIN = PredictOptions()
pytestmark = pytest.mark.usefixtures("small_chunks")


def written(run: Path, source: Path, out: Path, options: PredictOptions = PLAIN) -> bytes:
    predict_file(run, str(source), out, options, device="cpu")
    return out.read_bytes()


def interrupted(run: Path, source: Path, out: Path, after: int = 2) -> Path:
    """The folder of pieces that a command leaves that was killed after some of them."""

    def kill(rows: int) -> None:
        if rows and len(list(out.with_name(f"{out.name}.pieces").glob("*.piece"))) >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_file(run, str(source), out, PLAIN, device="cpu", advance=kill)
    assert not out.exists()
    return out.with_name(f"{out.name}.pieces")


def test_pieces_are_not_written_where_a_link_leads(
    molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "o.csv.pieces").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"o.csv.pieces is a link"):
        predict_file(molecule_run, str(new_file), tmp_path / "o.csv", PLAIN, device="cpu")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_same_command_goes_on_after_a_kill(
    molecule_run: Path, new_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = written(molecule_run, new_file, tmp_path / "whole.csv")
    pieces = interrupted(molecule_run, new_file, tmp_path / "o.csv")
    (pieces / ".00000003.piece.0123456789ab.tmp").write_text("half")
    computed, rows = [], []
    real = Run.records
    monkeypatch.setattr(
        Run, "records", lambda self, rows: computed.append(rows.first) or real(self, rows)
    )
    summary = predict_file(
        molecule_run, str(new_file), tmp_path / "o.csv", PLAIN, device="cpu", advance=rows.append
    )
    assert computed == [16, 24]
    assert sum(rows) == summary.records == 30
    assert summary.errors == len(summary.first_errors) == 3
    assert (tmp_path / "o.csv").read_bytes() == whole
    assert not pieces.exists()


def test_a_lost_piece_is_made_anew(molecule_run: Path, new_file: Path, tmp_path: Path) -> None:
    whole = written(molecule_run, new_file, tmp_path / "whole.csv")
    pieces = interrupted(molecule_run, new_file, tmp_path / "o.csv", after=3)
    next(iter(sorted(pieces.glob("*.piece")))).unlink()
    assert written(molecule_run, new_file, tmp_path / "o.csv") == whole


def test_a_damaged_piece_is_told(molecule_run: Path, new_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    whole = written(molecule_run, new_file, tmp_path / "whole.parquet")
    pieces = interrupted(molecule_run, new_file, tmp_path / "o.parquet", after=3)
    first, second, *_ = sorted(pieces.glob("*.piece"))
    second.write_bytes(first.read_bytes()[:100])
    with pytest.raises(UserError, match=rf"{second.name} is damaged; delete it, and the same"):
        written(molecule_run, new_file, tmp_path / "o.parquet")
    second.unlink()
    (pieces / "00000000.errors").write_text("3")
    with pytest.raises(UserError, match=r"00000000.errors is damaged; delete .*o.parquet.pieces"):
        written(molecule_run, new_file, tmp_path / "o.parquet")
    (pieces / "00000000.errors").unlink()
    assert written(molecule_run, new_file, tmp_path / "o.parquet") == whole


def test_nothing_is_written_over(molecule_run: Path, new_file: Path, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("mine")
    with pytest.raises(
        UserError, match=r"o.csv exists already; delete it, or choose another `out`"
    ):
        written(molecule_run, new_file, tmp_path / "o.csv")
    (tmp_path / "p.csv.pieces").mkdir()
    (tmp_path / "p.csv.pieces" / "mine").touch()
    with pytest.raises(UserError, match=r"p.csv.pieces is in the way"):
        written(molecule_run, new_file, tmp_path / "p.csv")


@pytest.mark.parametrize("rows", [None, "", "id,smiles\na,no molecule\n"])
def test_what_can_only_be_refused_leaves_no_pieces(
    molecule_run: Path, tmp_path: Path, rows: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if rows is not None:
        Path("in.csv").write_text(rows)
    with pytest.raises(UserError):
        predict_file(molecule_run, "in.csv", Path("o.csv"), PredictOptions())
    assert [path.name for path in tmp_path.iterdir() if path.name != "in.csv"] == []


def test_pieces_of_another_prediction_are_not_joined(
    molecule_run: Path, new_file: Path, tmp_path: Path, molecule_table: Table
) -> None:
    out = tmp_path / "o.csv"
    interrupted(molecule_run, new_file, out)
    with pytest.raises(UserError, match="holds pieces of another prediction; delete it"):
        written(molecule_run, new_file, out, PredictOptions(alpha=0.3))
    new_file.write_text(molecule_table(20))
    with pytest.raises(UserError, match="holds pieces of another prediction; delete it"):
        written(molecule_run, new_file, out)


def test_a_command_that_did_nothing_leaves_nothing(
    molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    wrong = PredictOptions(columns=ColumnNames(smiles="smile"))
    with pytest.raises(UserError, match="did you mean smiles"):
        written(molecule_run, new_file, tmp_path / "o.csv", wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
    written(molecule_run, new_file, tmp_path / "o.csv")


def test_a_full_disk_is_told_and_the_same_command_goes_on(
    molecule_run: Path, new_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = written(molecule_run, new_file, tmp_path / "whole.csv")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(records.RecordFormat, "join", full)
        with pytest.raises(UserError, match="No space left on device; the same command goes on"):
            written(molecule_run, new_file, tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match=r"cannot write .* No space left on device"):
            written(molecule_run, new_file, tmp_path / "p.csv")
    assert written(molecule_run, new_file, tmp_path / "o.csv") == whole
    assert written(molecule_run, new_file, tmp_path / "p.csv") == whole


@pytest.mark.parametrize("where", ["between two pieces", "in the output"])
@pytest.mark.parametrize("name", ["o.csv", "o.jsonl.gz", "o.parquet"])
def test_a_prediction_that_was_killed_ends_as_one_that_was_not(
    molecule_run: Path,
    new_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    killed: Callable[[Callable[[], object]], None],
    name: str,
    where: str,
) -> None:
    """SIGKILL after two of four pieces, and when half of the output was written."""
    whole = written(molecule_run, new_file, tmp_path / f"whole-{name}")
    out = tmp_path / name

    def kill(*_: object) -> None:
        if where == "in the output" or len(list(tmp_path.glob("*.pieces/*.piece"))) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    def half_a_join(kind: records.RecordFormat, pieces: list[Path], file: IO[bytes]) -> None:
        file.write(whole[: len(whole) // 2])
        file.flush()
        kill()

    with monkeypatch.context() as patched:
        advance = kill if where == "between two pieces" else lambda rows: None
        patched.setattr(records.RecordFormat, "join", half_a_join)
        killed(
            lambda: predict_file(
                molecule_run, str(new_file), out, PLAIN, device="cpu", advance=advance
            )
        )
    assert not out.exists()
    assert written(molecule_run, new_file, out) == whole
    assert not list(tmp_path.glob("*.pieces"))
