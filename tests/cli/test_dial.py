"""`--lam`, and `cores curve`."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cores.explain import dial as pictures
from cores.explain import plotting
from cores.runs.curve import Curve, Point

Ask = Callable[..., tuple[int, str, str]]
CPU = ("--device", "cpu")


@pytest.fixture(autouse=True)
def narrow(short_judge: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_commands_take_a_setting_and_tell_it(ask: Ask, dial_run: Path, tmp_path: Path) -> None:
    status, out, _ = ask("evaluate", dial_run, "--lam", "0.2", "--json", *CPU)
    assert (status, json.loads(out)["lam"]) == (0, 0.2)
    status, out, _ = ask("predict", dial_run, "motifs", "--lam", "0.2", "--json", *CPU)
    assert status == 0
    assert {record["lam"] for record in json.loads(out)["records"]} == {0.2}
    page = tmp_path / "page.html"
    status, _, _ = ask("explain", dial_run, "--lam", "0.2", "--count", "2", "--out", page, *CPU)
    assert status == 0
    assert "Here it stands at 0.2" in page.read_text()


@pytest.mark.parametrize("command", ["evaluate", "predict", "explain", "curve"])
def test_a_model_without_a_dial_has_one_lambda(ask: Ask, molecule_run: Path, command: str) -> None:
    given = () if command == "curve" else ("--lam", "0.3")
    source = ("in.csv",) if command == "predict" else ()
    status, out, err = ask(command, molecule_run, *source, *given, *CPU)
    told = "this model was trained for one lambda; train with reward.dial\n"
    assert (status, out, err.rpartition(": ")[2]) == (2, "", told)


def test_a_value_between_the_settings_is_refused(ask: Ask, dial_run: Path) -> None:
    status, _, err = ask("predict", dial_run, "motifs", "--lam", "0.33", *CPU)
    assert status == 2
    assert err.endswith("--lam goes from 0 to 1 in steps of 0.05, got 0.33\n")


def test_a_curve_is_a_table_and_a_picture(ask: Ask, dial_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(dial_run, tmp_path / "run"))
    status, out, _ = ask("curve", run, "--settings", "3", *CPU)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "cores-node (gin) on motifs: 100 test graphs, percent"
    assert lines[1].split()[:2] == ["lambda", "accuracy"]
    assert [line.split()[0] for line in lines[2:5]] == ["0.00", "0.50", "1.00"]
    assert lines[3].split()[1] == "*"
    assert max(map(len, lines[:7])) <= 80
    assert {"curve.png", "curve.svg"} <= {path.name for path in run.iterdir()}

    status, out, _ = ask("curve", run, "--settings", "3", "--json", "--out", tmp_path / "o", *CPU)
    assert status == 0
    found = json.loads(out)
    assert [point["lam"] for point in found["points"]] == [0, 0.5, 1]
    wanted = {"lam", "accuracy", "kept_ratio", "judge_accuracy", "set_size", "coverage"}
    assert wanted <= set(found["points"][0])
    assert found["plain_accuracy"] is None
    assert (tmp_path / "o" / "curve.svg").read_bytes() == (run / "curve.svg").read_bytes()


def test_a_plain_network_is_measured_on_the_same_graphs(
    ask: Ask, dial_run: Path, tmp_path: Path
) -> None:
    tiny = ("--epochs", "1", "--network.hidden_dim", "4", "--network.num_layers", "1", *CPU)
    plain = tmp_path / "gnn"
    ask("train", "--dataset", "motifs", "--model", "gnn", "--out", plain, "--json", *tiny)
    options = ("--settings", "2", "--out", tmp_path, "--plain", plain)
    status, out, _ = ask("curve", dial_run, *options, "--json", *CPU)
    assert status == 0
    metrics = json.loads((plain / "metrics.json").read_text())
    assert json.loads(out)["plain_accuracy"] == metrics["accuracy"]
    other = tmp_path / "other"
    ask("train", "--dataset", "motifs", "--model", "gnn", "--out", other, "--split", "2", *tiny)
    status, _, err = ask("curve", dial_run, "--plain", other, *CPU)
    assert status == 2
    assert "--plain names a run with another test part" in err


def point(lam: float, kept: float, accuracy: float, judged: float | None) -> Point:
    return {
        "lam": lam,
        "kept_ratio": kept,
        "accuracy": accuracy,
        "judge_accuracy": judged,
        "judge_random_accuracy": judged,
    }


@pytest.mark.parametrize("judged", [0.7, None])
def test_the_picture_marks_the_setting_of_the_run(
    judged: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[object] = []
    monkeypatch.setattr(plotting, "save_figure", lambda figure, _: figures.append(figure) or [])
    points = [
        point(lam, kept, right, judged)
        for lam, kept, right in ((0.0, 0.1, 0.6), (0.5, 0.3, 0.8), (1.0, 0.9, 0.9))
    ]
    curve = Curve("d", "cores-node", "gin", 0.5, points, 0.92, 0.5, 0.95, 0.1, 100)
    pictures.dial_figure(curve, "my $run$", tmp_path / "unwritten")
    axis = figures[0].axes[0]  # type: ignore[attr-defined]
    (ring,) = axis.collections
    assert ring.get_offsets().tolist() == [[30, 80]]
    drawn = {line.get_label(): list(line.get_ydata()) for line in axis.lines}
    assert drawn["model"] == [60, 80, 90]
    assert drawn["plain network"] == [95, 95]
    assert ("judge" in drawn) == (judged is not None)
    (above,) = axis.child_axes
    named = {text.get_text(): text.get_position()[0] for text in above.get_xticklabels()}
    assert named == {"0.5": 30, "0": 10, "1": 90}
    assert axis.get_title(loc="left") == r"my \$run\$"
