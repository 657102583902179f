"""`cores reproduce` as a user meets it: tables and figures made once, failures told."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cores.config import RunConfig
from cores.data.catalogue import PAPER_DATASETS
from cores.errors import UserError
from cores.runs.runner import Outcome, run_folder
from cores_paper.cli import reproduce as reproduction
from cores_paper.tables.targets import PICTURES, TARGETS, models_of, runs_of

Ask = Callable[..., tuple[int, str, str]]
ONE_RUN = ["comparison-gin", "--datasets", "MUTAG", "--models", "gnn", "--splits", "1"]


@pytest.mark.data
@pytest.mark.usefixtures("runs_here", "short_judge", "unchecked")
def test_a_table_is_made_once_and_not_again(
    ask: Ask, tmp_path: Path, data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduction, "QUICK_EPOCHS", 4)
    arguments = ["reproduce", "comparison-gin", "--datasets", "MUTAG", "--quick", "--workers", "2"]
    arguments += [
        "--models",
        "gnn,cores-edge",
        "--out",
        tmp_path,
        "--data-root",
        data_root,
        "--device",
        "cpu",
    ]
    status, out, _ = ask(*arguments, "--json")
    assert status == 0
    first = json.loads(out)
    assert len(first["rows"]) == 4
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.json")}
    _, out, _ = ask(*arguments, "--json")
    assert json.loads(out) == first
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.json")}
    _, out, _ = ask(*arguments)
    assert "MUTAG" in out
    assert "GIN: All three hold in" in out
    for suffix in (".md", ".tex"):
        text = (tmp_path / f"comparison-gin{suffix}").read_text()
        assert "(quick: 4 epochs, not for reading)" in text
    for suffix, word in ((".md", "| MUTAG | 2 |"), (".tex", r"\begin{tabular}")):
        assert word in (tmp_path / f"comparison-gin{suffix}").read_text()
    elsewhere = tmp_path / "elsewhere"  # as if on another machine, with the rows at hand
    rows = ["--out", elsewhere, "--rows", tmp_path / "comparison-gin.csv"]
    _, out, _ = ask(*arguments, *rows, "--json")
    assert json.loads(out)["rows"] == first["rows"]
    assert not list(elsewhere.rglob("metrics.json"))


@pytest.mark.data
def test_table_1_is_the_papers(ask: Ask, tmp_path: Path, data_root: Path) -> None:
    arguments = ["--datasets", "MUTAG,ENZYMES", "--out", tmp_path, "--data-root", data_root]
    _, out, _ = ask("reproduce", "datasets", *arguments, "--json")
    assert [row["graphs"] for row in json.loads(out)["rows"]] == [135, 600]
    table = (tmp_path / "datasets.md").read_text()
    assert "| MUTAG | 135 | 7 | 4 | 2 | yes | 18.85 | 4.49 | 41.67 | 11.13 |" in table


def test_a_figure_without_runs_is_drawn(ask: Ask, tmp_path: Path) -> None:
    _, out, err = ask("reproduce", "sparsity-reward", "--out", tmp_path)
    assert err == ""
    assert out.split() == [str(tmp_path / f"sparsity-reward.{kind}") for kind in ("png", "svg")]
    assert (tmp_path / "sparsity-reward.png").read_bytes().startswith(b"\x89PNG")


def test_an_option_that_a_target_does_not_read_is_told(ask: Ask, tmp_path: Path) -> None:
    arguments = ["reproduce", "sparsity-reward", "--datasets", "MUTAG", "--out", tmp_path]
    status, _, err = ask(*arguments)
    assert (status, err) == (0, "note: sparsity-reward has no use for --datasets\n")


@pytest.mark.usefixtures("runs_here", "short_judge", "few_motifs", "unchecked")
def test_the_pipeline_is_drawn_from_one_run(
    ask: Ask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reproduction, "QUICK_EPOCHS", 2)
    arguments = ["reproduce", "pipeline", "--quick", "--out", tmp_path, "--device", "cpu", "--json"]
    arguments += ["--splits", "2-5", "--seeds", "1"]
    status, out, _ = ask(*arguments)
    assert status == 0
    assert [(row["split"], row["seed"]) for row in json.loads(out)["rows"]] == [(2, 1)]
    assert (tmp_path / "pipeline.svg").read_text().count("<svg") == 1
    _, again, _ = ask(*arguments)
    assert json.loads(again) == json.loads(out)


def test_every_target_has_a_maker_and_its_runs_are_valid() -> None:
    assert set(reproduction._MAKERS) == set(TARGETS)
    for target in TARGETS:
        for preset in ("default", "paper", "authors"):
            models = models_of(target, preset)
            if target not in PICTURES:
                assert runs_of(target, PAPER_DATASETS, models, [1], preset)


@pytest.mark.data
@pytest.mark.usefixtures("runs_here")
def test_a_shorter_run_does_not_slip_into_a_table(
    ask: Ask, tmp_path: Path, data_root: Path
) -> None:
    arguments = ["reproduce", "comparison-gin", "--datasets", "MUTAG", "--models", "gnn", "--json"]
    arguments += ["--out", tmp_path, "--data-root", data_root, "--device", "cpu"]
    ask(*arguments, "--quick", "--splits", "1")
    _, out, _ = ask(*arguments, "--quick", "--splits", "2")
    assert [row["split"] for row in json.loads(out)["rows"]] == [2]


@pytest.mark.usefixtures("quick_workers")
def test_a_table_whose_runs_fail_says_so(ask: Ask, tmp_path: Path) -> None:
    arguments = ["--datasets", "MUTAG", "--models", "gnn", "--splits", "1", "--out", tmp_path]
    status, _, err = ask("reproduce", "comparison-gin", *arguments, "--data-root", tmp_path)
    assert status == 2
    assert "1 of 1 runs failed" in err
    assert "has no MUTAG" in err


@pytest.mark.parametrize(
    ("failure", "status", "message"),
    [
        ("ZeroDivisionError: so it is", 1, "ZeroDivisionError: so it is"),
        ('torch sees no GPU; use device="cpu"', 1, "torch sees no GPU; use --device cpu"),
        (None, 2, "workers must share --out"),
    ],
)
def test_a_run_that_failed_by_our_fault_or_elsewhere_is_told_apart(
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    failure: str | None,
    status: int,
    message: str,
) -> None:
    def run_all(configs: Sequence[RunConfig], root: Path, **options: Any) -> None:
        for config in configs:
            folder = run_folder(root, config)
            if failure is not None:
                folder.mkdir()
                (folder / "error.txt").write_text(failure)
            options["done"](Outcome(config, folder, failure))

    monkeypatch.setattr("cores.runs.runner.run_all", run_all)
    arguments = ["--models", "gnn", "--datasets", "MUTAG", "--splits", "1,1", "--out", tmp_path]
    found, _, err = ask("reproduce", "comparison-gin", *arguments)
    assert found == status
    assert "1 of 1 runs failed" in err.splitlines()[-1]
    assert message in err.splitlines()[-1]
    assert message in err.splitlines()[0], "the run's own line speaks of options, too"


def test_runs_locked_by_another_process_are_waited_for_with_a_note(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_all(configs: Sequence[RunConfig], root: Path, **options: Any) -> None:
        options["waits"](len(configs))

    monkeypatch.setattr("cores.runs.runner.run_all", run_all)
    arguments = ["--models", "gnn", "--datasets", "motifs", "--splits", "1,2", "--out", tmp_path]
    _, _, err = ask("reproduce", "comparison-gin", *arguments)
    assert err == "note: the last 2 runs are locked by another process; waiting for them\n"


def test_all_goes_on_past_a_target_that_fails(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []

    def make(options: object, target: str) -> dict[str, str]:
        if target == "ablation-d":
            raise UserError("no luck")
        made.append(target)
        return {"target": target}

    monkeypatch.setattr(reproduction, "_MAKERS", dict.fromkeys(TARGETS, make))
    status, _, err = ask("reproduce", "all", "--out", tmp_path)
    assert status == 2
    assert made == [target for target in TARGETS if target != "ablation-d"]
    assert err.splitlines() == [
        "failed: ablation-d: no luck",
        f"cores: 1 of {len(TARGETS)} targets failed, ablation-d: no luck",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["comparision-gin"], "did you mean comparison-gin"),
        (["comparison-gin", "--datasets", "MUTGA"], "did you mean MUTAG"),
        (["comparison-gin", "--models", "gnm"], "unknown model 'gnm'; did you mean gnn"),
        (["comparison-gin", "--splits", "3-1"], "--splits takes numbers from 1 such as 1-5"),
        (["comparison-gin", "--splits", "0"], "--splits takes numbers from 1 such as 1-5"),
        (["comparison-gin", "--seeds", "x"], "--seeds takes numbers from 0 such as 1-5"),
        (["ablation-d", "--models", "gnn"], "needs models with a policy, got gnn"),
        (["all", "--rows", "rows.csv"], "leave it out with all"),
        (["comparison-gin", "--workers", "0"], "--workers must be positive, got 0"),
        ([*ONE_RUN, "--rows", "TMP/file/rows.csv"], "cannot make the folder TMP/file"),
        ([*ONE_RUN, "--rows", "TMP/file"], "the first line must name the columns"),
        (["time-train", "--rows", "TMP/file"], "the first line must name the columns"),
        (
            ["time-train", "--preset", "paper"],
            "measured at the default settings",
        ),
        (["comparison-gin", "--splits", f"1-{10**20}"], "--splits takes numbers from 1 such as"),
        (["comparison-gin", "--datasets", ","], "--datasets names nothing"),
        (["mutag", "--models", ","], "--models names nothing"),
        ([*ONE_RUN, "--data-root", "~nobody-here/x"], "~nobody-here/x does not exist"),
        (
            [*ONE_RUN, "--scheduler", "foo://bar:1"],
            "no dask scheduler answers at foo://bar:1",
        ),
        ([*ONE_RUN, "--scheduler", "head"], "--scheduler takes an address such as tcp"),
        (
            [*ONE_RUN, "--scheduler", "tls://head:1", "--tls-ca", "a.pem"],
            "certificates need --tls-ca, --tls-cert, --tls-key; there is no --tls-cert",
        ),
        (
            [*ONE_RUN, "--scheduler", "tls://head:1"],
            "tls://head:1 needs certificates: give --tls-ca, --tls-cert and --tls-key, or",
        ),
        (["ablation-d", "--models", "mlp,cores-node"], "needs models with a policy, got mlp"),
    ],
)
def test_a_table_asked_for_wrongly_is_refused(
    ask: Ask, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "file").write_text("not rows")
    arguments = [each.replace("TMP", str(tmp_path)) for each in arguments]
    status, _, err = ask("reproduce", *arguments, "--out", tmp_path / "runs")
    assert status == 2
    assert err.count("\n") == 1
    assert message.replace("TMP", str(tmp_path)) in err
