"""Tables and progress, in a terminal and in a log."""

import sys
from collections.abc import Callable

import pytest

from cores.cli.display import print_metrics, print_note, print_table, runs_progress
from cores.runs.rows import MEANINGS


def test_a_log_gets_a_line_for_every_run_that_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with runs_progress(2, {"out": "--out"}) as advance:
        advance("MUTAG-gnn", None)
        advance("PTC-gnn", "no room; choose another `out`")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "1/2 runs after 0:00:00: MUTAG-gnn",
        "failed: PTC-gnn: no room; choose another --out",
    ]


def test_a_terminal_gets_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with runs_progress(2, {}) as advance:
        advance("MUTAG-gnn", None)
    text = capsys.readouterr().err
    assert "1/2" in text
    assert "MUTAG-gnn" not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_what_fails_before_the_first_run_leaves_no_bar(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(ValueError, match="unreachable"), runs_progress(2, {}):
        raise ValueError("unreachable")
    text = capsys.readouterr().err
    erase_line = "\x1b[2K"
    assert text.rstrip().endswith(erase_line) if terminal else text == ""


def test_a_runs_metrics_fit_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = {"model": "cores-node", "conv": "gin", "dataset": "motifs", "seconds": 1234.567}
    print_metrics(dict.fromkeys(MEANINGS, 0.5) | run, "runs/mine", {})
    title, head, rule, *rows = capsys.readouterr().out.splitlines()
    assert title.split() == ["cores-node", "(gin)", "on", "motifs"]
    assert head.split()[::2] == ["metric", "value", "meaning"]
    assert rule.startswith("━")
    assert len(rows) == len(MEANINGS) + 1, "a line each, and the folder"
    judged = rows[list(MEANINGS).index("judge_accuracy")]
    assert judged.endswith("an independent classifier on the same subgraphs")


def test_what_to_do_about_a_model_is_told_by_options_that_exist(
    ask: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cores evaluate` has no option of the training."""
    told = 'Too long: lower `lam` or `desired_ratio`, training.balance="always"; choose `alpha`.'
    run = {"model": "cores-node", "conv": "gin", "dataset": "motifs", "verdicts": [told]}
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("cores.runs.run.evaluate_run", lambda *_, **__: run)
    _, out, _ = ask("evaluate", "runs/mine")
    assert "lower --lam or --desired-ratio, --training.balance always of `cores train`" in out
    assert "choose --alpha." in out


def test_what_stands_in_a_foreign_file_is_shown_and_not_obeyed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = "[/red]\x1b[31m"
    run = dict.fromkeys(("model", "conv", "dataset"), hostile) | {"accuracy": hostile}
    print_metrics(run | {"verdicts": [hostile]}, hostile, {})
    print_table(hostile, f"| a |\n|---|\n| {hostile} |")
    print_note(hostile)
    with runs_progress(1, {}) as advance:
        advance(hostile, None)
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert printed.out.count("[/red]\\x1b[31m") >= 6
    assert printed.err.count("[/red]\\x1b[31m") == 2


def test_verdicts_come_after_the_table_and_name_options(capsys: pytest.CaptureFixture[str]) -> None:
    run = {"model": "cores-node", "conv": "gin", "dataset": "motifs", "accuracy": 0.5}
    verdicts = ["Keeps all: lower `lam`.", "[b]Measured[/b] on 14 test graphs."]
    print_metrics(run | {"verdicts": verdicts}, "runs/mine", {"lam": "--lam"})
    *_, row, first, second, folder = capsys.readouterr().out.splitlines()
    assert row.startswith("accuracy")
    assert (first, second) == ("Keeps all: lower --lam.", verdicts[1])
    assert folder == "Run folder: runs/mine"
