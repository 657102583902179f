"""`cores plot`."""

import json
from collections.abc import Callable
from pathlib import Path

Ask = Callable[..., tuple[int, str, str]]


def test_one_run_is_drawn_into_its_folder(ask: Ask, recorded_run: Path) -> None:
    status, out, _ = ask("plot", recorded_run)
    assert status == 0
    assert "learning_curves.png" in out
    assert (recorded_run / "learning_curves.png").is_file()


def test_several_runs_need_a_name(ask: Ask, recorded_run: Path, tmp_path: Path) -> None:
    status, _, err = ask("plot", recorded_run, recorded_run)
    assert status == 2
    assert "add --out" in err
    picture, events = tmp_path / "both.svg", tmp_path / "events"
    _, out, _ = ask(
        *("plot", "--json", recorded_run, recorded_run, "--out", picture, "--tensorboard", events)
    )
    assert json.loads(out) == {"runs": 2, "out": [str(picture), str(events)]}
    before = picture.read_bytes()
    status, _, err = ask("plot", recorded_run, "--out", picture)
    assert status == 2
    assert "exists" in err
    assert picture.read_bytes() == before
    assert events.is_dir()
