"""Learning curves: pictures of what the histories hold, and TensorBoard's files."""

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes

from cores.errors import UserError
from cores.explain.learning import (
    LearningCurves,
    draw_learning_curves,
    read_history,
    write_tensorboard,
)
from cores.training.journal import HISTORY


def test_a_picture_has_a_panel_for_every_metric_and_a_line_for_every_run(
    recorded_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[int] = []
    plain = Axes.plot

    def plot(self: Axes, epochs: Any, values: Any, **style: Any) -> Any:
        lines.append(len(epochs))
        return plain(self, epochs, values, **style)

    monkeypatch.setattr(Axes, "plot", plot)
    out = tmp_path / "curves.svg"
    draw_learning_curves([recorded_run], out)
    epochs = len(read_history(recorded_run))
    policy_epochs = sum("reward" in epoch for epoch in read_history(recorded_run))
    assert lines == [epochs, epochs, epochs - policy_epochs, policy_epochs]
    ElementTree.parse(out)
    for text in ("accuracy, selection part", "share kept", "loss", "reward", "cost_$x^2$"):
        assert text in out.read_text()
    assert "policy" in out.read_text(), "where it begins"
    lines.clear()
    draw_learning_curves([recorded_run, recorded_run], tmp_path / "two.png")
    assert len(lines) == 8
    assert (tmp_path / "two.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_has_just_begun_is_drawn_as_far_as_it_is(
    recorded_run: Path, tmp_path: Path
) -> None:
    first, second, *_ = (recorded_run / HISTORY).read_text().splitlines()
    (recorded_run / HISTORY).write_text(f"{first}\n{second[:10]}")
    curves = LearningCurves.of(recorded_run)
    assert len(curves.epochs) == 1
    assert curves.begun == [("classifier", 1)]
    draw_learning_curves([recorded_run], tmp_path / "one.png")


@pytest.mark.parametrize(
    ("out", "said"), [("curves.jpg", "ends in .png, .svg or .pdf"), ("curves", "ends in")]
)
def test_other_pictures_are_refused(
    recorded_run: Path, tmp_path: Path, out: str, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        draw_learning_curves([recorded_run], tmp_path / out)


def test_a_run_without_epochs_is_refused(recorded_run: Path, tmp_path: Path) -> None:
    (recorded_run / HISTORY).unlink()
    with pytest.raises(UserError, match="has no epochs yet"):
        draw_learning_curves([recorded_run], tmp_path / "curves.png")
    with pytest.raises(UserError, match=r"config\.json"):
        draw_learning_curves([tmp_path], tmp_path / "curves.png")
    assert not (tmp_path / "curves.png").exists()


def test_tensorboard_reads_every_number_of_every_epoch(recorded_run: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    write_tensorboard([recorded_run], tmp_path / "events")
    (place,) = (tmp_path / "events").iterdir()
    events = EventAccumulator(str(place)).Reload()
    epochs = read_history(recorded_run)
    assert [(each.step, each.value) for each in events.Scalars("loss")] == [
        (number, pytest.approx(epoch["loss"], rel=1e-6))
        for number, epoch in enumerate(epochs, 1)
        if "loss" in epoch
    ]
    assert "selection_ratio" in events.Tags()["scalars"]
    with pytest.raises(UserError, match="has files already"):
        write_tensorboard([recorded_run], tmp_path / "events")


def test_without_tensorboard_the_error_says_what_to_install(
    recorded_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match=r"cores-gnn\[tensorboard\]"):
        write_tensorboard([recorded_run], tmp_path / "events")
    assert not (tmp_path / "events").exists()


def test_values_that_are_no_numbers_are_left_out(recorded_run: Path, tmp_path: Path) -> None:
    hostile = [{"loss": "<b>"}, {"loss": None}, {"loss": True}, {"loss": 1e999}, {"loss": 0.5}]
    (recorded_run / HISTORY).write_text("\n".join(json.dumps(each) for each in hostile))
    draw_learning_curves([recorded_run], tmp_path / "curves.svg")
    assert "<b>" not in (tmp_path / "curves.svg").read_text()
