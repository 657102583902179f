"""`cores compare`: several models on anyone's data in one table."""

import csv
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cores.cli.display import print_columns, print_lines
from cores.config.models import MODELS
from cores.data.inputs.columns import ColumnNames
from cores.runs.compare import comparison_columns, comparison_legend, comparison_lines
from cores.tasks import MULTILABEL, REGRESSION, TASKS, Task

Ask = Callable[..., tuple[int, str, str]]


@pytest.mark.usefixtures("quick_workers")
def test_models_are_compared_on_the_same_splits(
    ask: Ask, tu_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "small.toml").write_text("[network]\nhidden_dim = 8\nnum_layers = 1\n")
    arguments = ["compare", "--dataset", tu_folder, "--models", "gnn,mlp", "--splits", "1-2"]
    arguments += ["--epochs", "1", "--settings", tmp_path / "small.toml", "--device", "cpu"]
    arguments += ["--out", tmp_path / "runs"]
    status, out, err = ask(*arguments)
    assert status == 0, err
    _, head, *lines = out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["GNN", "MLP"]
    assert all(len(line.split()) == len(head.split()) for line in lines[:2])
    assert head.split()[2:4] == ["accuracy", "balanced"]
    assert lines[-2] == f"Picture: {tmp_path / 'runs' / 'comparison.png'}"
    rows = tmp_path / "runs" / "comparison.csv"
    assert lines[-1] == f"Rows: {rows}"
    with rows.open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [(row["model"], row["split"]) for row in written] == list(
        itertools.product(["gnn", "mlp"], ["1", "2"])
    )
    assert all(0 <= float(row["accuracy"]) <= 1 for row in written)
    assert "mae" not in written[0], "columns without a value are left out"
    _, out, _ = ask(*arguments, "--json")
    printed = json.loads(out)
    found = {(row["model"], row["split"]) for row in printed["rows"]}
    assert found == {("gnn", 1), ("gnn", 2), ("mlp", 1), ("mlp", 2)}
    assert all(Path(path).stat().st_size > 5000 for path in printed["pictures"])
    for path in (tmp_path / "runs").glob("*/config.json"):
        config = json.loads(path.read_text())["config"]
        assert (config["network"]["hidden_dim"], config["training"]["epochs"]) == (8, 1)


def measured(task: Task, scale: float = 1.0) -> list[dict[str, str]]:
    """Rows of every model of a task, two each, with the widest numbers."""
    high = {"percent": (1.0, 0.0), "plain": (-9.5, -8.5), "target": (0.199 * scale, 0.1 * scale)}
    told = {task.beside.metric: high[task.beside.unit]}
    for name in ("{}", "judge_{}", "judge_random_{}"):
        told[name.format(task.leading.metric)] = high[task.leading.unit]
    rest = {"node_ratio": (1.0, 0.0), "edge_ratio": (1.0, 0.0), "seconds": (86400.0, 86400.0)}
    return [
        {"model": name, **{metric: str(pair[at]) for metric, pair in (told | rest).items()}}
        for name, spec in MODELS.items()
        if task.name in spec.tasks
        for at in range(2)
    ]


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
@pytest.mark.parametrize("scale", [1.0, 1e-6, 3e4, 8e9])
def test_the_table_of_all_models_fits_80_columns(
    task: Task,
    scale: float,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the widest numbers: a mean of 100 and two digits of deviation."""
    monkeypatch.setenv("COLUMNS", "80")
    rows = measured(task, scale)
    lines, legend = comparison_lines(rows, task), comparison_legend(rows, task)
    print_columns("all of them", comparison_columns(task), lines)
    print_lines(legend)
    shown = capsys.readouterr().out.splitlines()
    assert len(lines) == len({row["model"] for row in rows})
    assert len(shown) == 2 + len(lines) + len(legend)
    assert max(map(len, shown)) <= 80
    for line, cells in zip(shown[2:], lines, strict=False):
        assert line.split() == " ".join(cells).split()


def test_errors_are_told_in_their_unit_or_in_a_power_of_it() -> None:
    for scale, told, unit in (
        (1, "0.150±0.07", ""),
        (1e-6, "150±70", "1e-9"),
        (9e4, "13.5±6", "1e+3"),
    ):
        rows = measured(REGRESSION, scale)
        assert comparison_lines(rows, REGRESSION)[0][2:4] == [told, "-9.00"]
        first = comparison_legend(rows, REGRESSION)[0]
        assert first.startswith("MAE: mean absolute error")
        assert first.endswith("lower is better")
        assert unit in first
    assert comparison_lines(measured(MULTILABEL), MULTILABEL)[0][2] == "50.0±71"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: --dataset"),
        (["--dataset", "motifs", "--models", "gnm"], "unknown model 'gnm'; did you mean gnn"),
        (["--dataset", "motifs", "--conv", "gim"], "unknown conv 'gim'; did you mean gin"),
        (["--dataset", "motifs", "--epochs", "x"], "--epochs: invalid int value: 'x'"),
        (["--dataset", "motifs", "--task", "regression"], "motifs has classes; leave --task reg"),
        (["--dataset", "motifs", "--workers", "0"], "--workers must be positive, got 0"),
        (
            ["--dataset", "MUTAG", "--data-root", "TMP"],
            "TMP has no MUTAG; put it at TMP/tu_cleaned",
        ),
        (
            ["--dataset", "motifs", "--settings", "TMP/no.toml"],
            "--settings: cannot read TMP/no.toml",
        ),
    ],
)
def test_a_comparison_asked_for_wrongly_gets_one_line_and_no_run(
    ask: Ask, tmp_path: Path, arguments: list[str], message: str
) -> None:
    arguments = [argument.replace("TMP", str(tmp_path)) for argument in arguments]
    status, out, err = ask("compare", *arguments, "--out", tmp_path / "runs")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message.replace("TMP", str(tmp_path)) in err
    assert not (tmp_path / "runs").exists()


def test_columns_of_a_file_are_named(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, object]] = []
    monkeypatch.setattr("cores.runs.compare.compare", lambda *_, **found: asked.append(found) or [])
    monkeypatch.setattr("cores_paper.search.search", lambda *_, **found: asked.append(found) or [])
    table = "structure_text,active,fold\nC,no,train\n" + "c1ccccc1,yes,test\n" * 2 + "C(,yes,test\n"
    (tmp_path / "mine.csv").write_text(table)
    named = ["--smiles-column", "structure_text", "--label-column", "active"]
    named += ["--split-column", "fold"]
    for command in ("compare", "search"):
        status, _, err = ask(command, "--dataset", tmp_path / "mine.csv", *named, "--json")
        assert status == 0, err
        assert err == "note: 1 rows could not be used: line 5 (3): invalid SMILES 'C('\n"
        assert asked[-1]["columns"] == ColumnNames("structure_text", "active", split="fold")
        status, _, err = ask(command, "--dataset", tmp_path / "mine.csv", *named, "--on-error=fail")
        assert (status, "line 5 (3): invalid SMILES" in err) == (2, True)
        status, _, err = ask(command, "--dataset", "motifs", "--id-column", "name")
        assert (status, err) == (2, "cores: motifs is no file with columns to name\n")
    assert asked[0]["settings"]["parts"] == {"kind": "column"}  # type: ignore[index]
