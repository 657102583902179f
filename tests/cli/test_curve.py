"""`--sufficiency` and `--parts`, `cores curve` and `cores tune`."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cores.explain import curve as pictures
from cores.explain import plotting
from cores.runs.curve import Curve, Point

Ask = Callable[..., tuple[int, str, str]]
CPU = ("--device", "cpu")


@pytest.fixture(autouse=True)
def narrow(short_judge: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_commands_take_a_sufficiency_and_tell_it(ask: Ask, drawn_run: Path, tmp_path: Path) -> None:
    status, out, _ = ask("evaluate", drawn_run, "--sufficiency", "0.7", "--json", *CPU)
    assert (status, json.loads(out)["sufficiency"]) == (0, 0.7)
    weak = {}
    for value in ("0.6", "0.95"):
        status, out, _ = ask("predict", drawn_run, "motifs", "--sufficiency", value, "--json", *CPU)
        assert status == 0
        weak[value] = sum(record["weak"] for record in json.loads(out)["records"])
    assert weak["0.6"] < weak["0.95"]
    page = tmp_path / "page.html"
    given = ("--sufficiency", "0.7", "--parts", "cut", "--count", "2", "--out", page)
    status, _, _ = ask("explain", drawn_run, *given, *CPU)
    assert status == 0
    text = page.read_text()
    assert "parts at sufficiency 0.7" in text
    assert text.count("a smaller part may be enough</dd>") > 0


@pytest.mark.parametrize("command", ["evaluate", "predict", "explain", "curve", "tune"])
def test_a_model_that_keeps_all_shows_no_parts(
    ask: Ask, train_tiny: Callable[..., Path], molecule_file: Path, command: str
) -> None:
    run = train_tiny(molecule_file, "gnn")
    given = {"curve": (), "tune": ("--max-wrong", "0.3")}.get(command, ("--sufficiency", "0.7"))
    source = ("in.csv",) if command == "predict" else ()
    status, out, err = ask(command, run, *source, *given, *CPU)
    assert (status, out, err.count("\n")) == (2, "", 1)
    remedy = "leave --sufficiency out" if "--sufficiency" in given else "train cores-node with"
    assert f"gnn shows no parts; {remedy}" in err


def test_a_curve_is_a_table_and_a_picture(ask: Ask, drawn_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(drawn_run, tmp_path / "run"))
    status, out, _ = ask("curve", run, *CPU)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "cores-node (gin) on motifs: 100 test graphs, percent"
    assert lines[1].split()[:2] == ["sufficiency", "accuracy"]
    values = ["0.50", "0.60", "0.70", "0.80", "0.90", "0.95", "0.99"]
    assert [line.split()[0] for line in lines[2:9]] == values
    assert lines[5].split()[1] == "*"
    assert max(map(len, lines[:12])) <= 80
    assert {"curve.png", "curve.svg"} <= {path.name for path in run.iterdir()}

    status, out, _ = ask("curve", run, "--json", "--out", tmp_path / "o", *CPU)
    assert status == 0
    found = json.loads(out)
    assert [f"{point['sufficiency']:.2f}" for point in found["points"]] == values
    wanted = {"sufficiency", "accuracy", "kept_ratio", "weak", "judge_accuracy", "set_size"}
    assert wanted <= set(found["points"][0])
    assert found["plain_accuracy"] is None
    assert (tmp_path / "o" / "curve.svg").read_bytes() == (run / "curve.svg").read_bytes()


def test_a_plain_network_is_measured_on_the_same_graphs(
    ask: Ask, drawn_run: Path, tmp_path: Path
) -> None:
    tiny = ("--epochs", "1", "--network.hidden_dim", "4", "--network.num_layers", "1", *CPU)
    plain = tmp_path / "gnn"
    ask("train", "--dataset", "motifs", "--model", "gnn", "--out", plain, "--json", *tiny)
    status, out, _ = ask("curve", drawn_run, "--out", tmp_path, "--plain", plain, "--json", *CPU)
    assert status == 0
    metrics = json.loads((plain / "metrics.json").read_text())
    assert json.loads(out)["plain_accuracy"] == metrics["accuracy"]
    other = tmp_path / "other"
    ask("train", "--dataset", "motifs", "--model", "gnn", "--out", other, "--split", "2", *tiny)
    status, _, err = ask("curve", drawn_run, "--plain", other, *CPU)
    assert status == 2
    assert "--plain names a run with another test part" in err


def test_tune_says_what_is_promised(ask: Ask, drawn_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(drawn_run, tmp_path / "run"))
    status, out, _ = ask("tune", run, "--max-wrong", "0.3", *CPU)
    assert status == 0
    assert out.startswith("Of all graphs, at most 30 % get a wrong class without being weak, on")
    assert "of them got a wrong class without being weak." in out
    given = ("--max-wrong", "0.3", "--confidence", "0.9", "--per-class", "--json")
    status, out, _ = ask("tune", run, *given, *CPU)
    assert status == 0
    found = json.loads(out)
    assert (found["confidence"], found["per_class"]) == (0.9, True)
    assert found["observed_wrong"] <= 0.3
    assert not found["measured_again"], "the run has no metrics"
    status, _, err = ask("tune", run, "--max-wrong", "0.001", *CPU)
    assert (status, err.count("\n")) == (2, 1)
    assert "takes 999 calibration graphs in all, and there are 100" in err


def point(sufficiency: float, kept: float, accuracy: float, judged: float | None) -> Point:
    return {
        "sufficiency": sufficiency,
        "kept_ratio": kept,
        "accuracy": accuracy,
        "judge_accuracy": judged,
        "judge_random_accuracy": judged,
    }


@pytest.mark.parametrize("judged", [0.7, None])
def test_the_picture_marks_the_sufficiency_of_the_run(
    judged: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[object] = []
    monkeypatch.setattr(plotting, "save_figure", lambda figure, _: figures.append(figure) or [])
    points = [
        point(value, kept, right, judged)
        for value, kept, right in ((0.5, 0.1, 0.6), (0.8, 0.3, 0.8), (0.95, 0.9, 0.9))
    ]
    curve = Curve("d", "cores-node", "gin", 0.8, points, 0.92, 0.5, 0.95, 0.1, 100)
    pictures.curve_figure(curve, "my $run$", tmp_path / "unwritten")
    axis = figures[0].axes[0]  # type: ignore[attr-defined]
    (ring,) = axis.collections
    assert ring.get_offsets().tolist() == [[30, 80]]
    drawn = {line.get_label(): list(line.get_ydata()) for line in axis.lines}
    assert drawn["model"] == [60, 80, 90]
    assert drawn["plain network"] == [95, 95]
    assert ("judge" in drawn) == (judged is not None)
    (above,) = axis.child_axes
    named = {text.get_text(): text.get_position()[0] for text in above.get_xticklabels()}
    assert named == {"0.8": 30, "0.5": 10, "0.95": 90}
    assert axis.get_title(loc="left") == r"my \$run\$"
