"""The command line as a user meets it: results, one JSON object, one line per mistake."""

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

Ask = Callable[..., tuple[int, str, str]]
QUICK = ["--model", "gnn", "--epochs", "2", "--network.hidden_dim", "8", "--device", "cpu"]


def test_train_then_evaluate(ask: Ask, tmp_path: Path) -> None:
    run = tmp_path / "run"
    status, out, _ = ask("train", "--dataset", "MOTIFS", *QUICK, "--out", run)
    assert status == 0
    assert "share of test graphs classified correctly" in out
    status, out, _ = ask("evaluate", run, "--json", "--device", "cpu")
    assert status == 0
    trained = json.loads((run / "metrics.json").read_text())
    assert json.loads(out)["accuracy"] == trained["accuracy"]


def test_json_is_one_object_and_nothing_else(ask: Ask, tmp_path: Path) -> None:
    _, out, err = ask("train", "--json", *QUICK, "--out", tmp_path / "run")
    assert json.loads(out)["epochs"] == 2
    assert "epochs/s" in err or "loss" in err, "progress goes to standard error"


@pytest.mark.data
def test_datasets_prints_table_1(ask: Ask, data_root: Path) -> None:
    _, out, _ = ask("datasets", "mutag", "--json", "--data-root", data_root)
    assert json.loads(out)["datasets"][0]["nodes_mean"] == 18.85
    _, out, _ = ask("datasets", "mutag", "--data-root", data_root)
    assert "18.85 ± 4.49" in out


@pytest.mark.data
def test_the_paper_preset_takes_the_published_settings(
    ask: Ask, tmp_path: Path, data_root: Path
) -> None:
    run = tmp_path / "run"
    arguments = ["--dataset", "mutag", "--preset", "paper", "--epochs", "1", "--out", run]
    assert ask("train", *arguments, "--model", "gnn", "--data-root", data_root)[0] == 0
    config = json.loads((run / "config.json").read_text())["config"]
    assert config["network"]["hidden_dim"] == 16
    assert config["parts"]["policy"] == 0.5
    assert config["training"]["patience"] == 800


@pytest.fixture
def broken(write_files: Callable[..., Path], tu_files: dict[str, str], tmp_path: Path) -> Path:
    """A folder of datasets, each broken in its own way."""

    def variant(name: str, file: str, text: str | None) -> None:
        files = {key: value for key, value in tu_files.items() if key != file}
        write_files(name, files if text is None else files | {file: text})

    variant("missing", "toy_graph_labels.txt", None)
    variant("uneven", "toy_node_labels.txt", "1\n2")
    variant("nan", "toy_node_attributes.txt", "nan\n" * 35 + "nan")
    variant("single", "toy_graph_labels.txt", "1\n" * 11 + "1")
    variant("few", "toy_graph_labels.txt", "1\n" * 10 + "5\n5")
    (tmp_path / "corrupt.zip").write_bytes(b"PK\x03\x04garbage")
    (tmp_path / "file").write_text("not a folder")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "MUTGA"], "unknown dataset 'MUTGA'; did you mean MUTAG?"),
        (
            ["--dataset", "MUTAG", "--data-root", "TMP/none"],
            "data folder TMP/none does not exist; set --data-root to the right one",
        ),
        (["--dataset", "TMP/corrupt.zip"], "TMP/corrupt.zip is not a readable zip file"),
        (["--dataset", "TMP/nothing.zip"], "TMP/nothing.zip does not exist"),
        (["--dataset", "TMP/missing"], "has no labels; NAME_graph_labels.txt is missing"),
        (["--dataset", "TMP/uneven"], "toy_node_labels.txt has 2 lines"),
        (["--dataset", "TMP/nan"], "has NaN, infinite or too large node features"),
        (["--dataset", "TMP/single"], "every graph has the label 1"),
        (["--dataset", "TMP/few"], "class 5 has 2 graphs, but each of the 5 parts"),
        (["--split", "0"], "--split counts from 1, got 0"),
        (["--seed", "-1"], "--seed must lie in [0, 2^63), got -1"),
        (["--seed", "99999999999999999999"], "--seed must lie in [0, 2^63)"),
        (
            ["--training.learning_rate", "nan"],
            "training.learning_rate must lie in (0, 2^31), got nan",
        ),
        (["--alpha", "1.5"], "--alpha must lie in (0, 1), got 1.5"),
        (["--conv", "gim"], "unknown conv 'gim'; did you mean gin"),
        (["--model", "svm"], "unknown model 'svm'; known: gnn, mlp"),
        (["--epochs", "0"], "training.epochs must lie in (0, 2^31), got 0"),
        (["--epochs", "2.5"], "--epochs: invalid int value: '2.5'; see cores train --help"),
        (["--network.hidden_dim", "100000000"], "network.hidden_dim must lie in [1, 65536]"),
        (["--network.pooling", "[mean,mean]"], "network.pooling must not repeat itself"),
        (["--dataset", ""], "the dataset's name is empty"),
        (["--dataset", "x" * 5000], "File name too long"),
        (["--dataset", "/dev/null"], "/dev/null is no regular file"),
        (["--network.hidden_dim", "x"], "--network.hidden_dim: invalid int value: 'x'"),
        (["--preset", "best"], "unknown preset 'best'; known: default, paper, authors"),
        (["--wings", "2"], "unrecognized arguments: --wings 2"),
        (["--desird-ratio", "0.2"], "did you mean --desired-ratio"),
        (["--per-class", "yes"], "unrecognized arguments: yes"),
        (
            ["--training.quantiles", "yes"],
            "--training.quantiles: expected true or false, got 'yes'",
        ),
        (["--lam", "2"], "--lam must lie in [0, 1], got 2.0"),
        (["--device", "cuda"], "torch sees no CUDA device here; use --device cpu"),
        (["--settings", "TMP/none.toml"], "--settings: cannot read TMP/none.toml"),
        (["--settings", "TMP/file"], "TMP/file is not valid TOML"),
        (["--out", "TMP/file"], "--out TMP/file is a file; name a folder"),
        (["--out", "TMP/file/run"], "cannot make the folder TMP/file/run"),
        (
            ["--preset", "paper"],
            "the paper has no settings for cores-node with gin on motifs; use --preset default",
        ),
    ],
)
def test_a_mistake_gets_one_line_status_2_and_no_run(
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    broken: Path,
    arguments: list[str],
    message: str,
) -> None:
    if "cuda" in arguments:
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    arguments = [each.replace("TMP", str(broken)) for each in arguments]
    if "--out" not in arguments:
        arguments += ["--out", str(broken / "run")]
    before = sorted(broken.rglob("*"))
    status, out, err = ask("train", *arguments)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert message.replace("TMP", str(broken)) in err
    assert sorted(broken.rglob("*")) == before, "no half-made run"


@pytest.mark.parametrize(
    "arguments",
    [
        *(("train",), ("compare", "--dataset", "motifs"), ("search",), ("export", "run")),
        *(("predict", "run", "new.csv"), ("reproduce", "table1")),
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("option", ["--out", "--data-root"])
def test_an_empty_path_is_refused(ask: Ask, arguments: tuple[str, ...], option: str) -> None:
    if (arguments[0], option) == ("export", "--data-root"):
        option = "--out"
    status, out, err = ask(*arguments, option, "")
    assert (status, out) == (2, "")
    assert f"{option}: it is empty; name a path, or leave the option out" in err


def test_escapes_in_a_foreign_file_are_shown_and_not_obeyed(ask: Ask, tmp_path: Path) -> None:
    hostile = "\x1b]0;title\x07\x9b31m"
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        for name in ("a", "b"):
            archive.writestr(f"{hostile}{name}_A.txt", "1, 2")
    (tmp_path / "run").mkdir()
    identity = {"version": hostile, "config": {}, "schema": {}}
    (tmp_path / "run" / "config.json").write_text(json.dumps(identity))
    for arguments in (("datasets", tmp_path / "two.zip"), ("evaluate", tmp_path / "run")):
        status, _, err = ask(*arguments)
        assert (status, err.count("\n")) == (2, 1)
        assert err.rstrip("\n").isprintable()
        assert r"\x1b]0;title\x07\x9b31m" in err


def test_a_lack_of_memory_is_told_in_one_line(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(*_: object, **__: object) -> None:
        raise RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
        )

    monkeypatch.setattr("cores.runs.run.evaluate_run", evaluate)
    status, _, err = ask("evaluate", "run")
    assert status == 2
    expected = "cores: out of memory: 9 bytes were asked for by cli/saved.py (_evaluate); "
    assert err.startswith(expected)


def test_a_wrong_setting_in_a_file_is_told_even_where_an_option_overrides_it(
    ask: Ask, tmp_path: Path
) -> None:
    (tmp_path / "typo.toml").write_text('[network]\nhidden_dim = "8"\n')
    status, _, err = ask("train", "--settings", tmp_path / "typo.toml", *QUICK)
    assert status == 2
    assert "setting 'network.hidden_dim' must be of type int, got '8'" in err


@pytest.mark.data
@pytest.mark.usefixtures("short_judge")
def test_a_file_is_checked_against_the_preset_it_changes(
    ask: Ask, data_root: Path, tmp_path: Path
) -> None:
    # One sample suits the paper's critic, not the default's comparison of several.
    file = tmp_path / "one.toml"
    file.write_text('preset = "paper"\n[training]\nepochs = 2\n[ppo]\nsamples = 1\n')
    asked = ["train", "--model", "cores-node", "--settings", file, "--out", tmp_path / "run"]
    assert ask(*asked, "--dataset", "MUTAG")[0] == 0
    status, _, err = ask(*asked, "--dataset", "motifs", "--preset", "default")
    assert status == 2
    assert "ppo.samples must be at least 2, got 1" in err


def test_brackets_in_a_name_are_not_markup(ask: Ask, tmp_path: Path, tu_folder: Path) -> None:
    data = tu_folder.rename(tmp_path / "d[y]")
    out = tmp_path / "run [b]x[-b]"
    status, printed, _ = ask("train", "--dataset", data, *QUICK, "--out", out)
    assert status == 0
    unbroken = printed.replace("\n", "")  # a long folder is wrapped
    assert "run [b]x[-b]" in unbroken
    assert "d[y]" in unbroken


def test_a_folder_with_another_run_is_refused(ask: Ask, tmp_path: Path) -> None:
    arguments = ["train", *QUICK, "--out", tmp_path / "run"]
    assert ask(*arguments)[0] == 0
    status, _, err = ask(*arguments, "--seed", "1")
    assert status == 2
    assert "holds another run (seed is 0 there and 1 here); choose another --out" in err
    status, _, err = ask(*arguments)
    assert status == 2
    assert "already holds this run; go on with --resume" in err
    assert ask(*arguments, "--resume")[0] == 0


def test_ctrl_c_leaves_a_run_that_goes_on(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cores.training import supervised

    def interrupted(*_: object) -> float:
        raise KeyboardInterrupt

    arguments = ["train", *QUICK, "--out", tmp_path / "run"]
    with monkeypatch.context() as patch:
        patch.setattr(supervised, "fit_epoch", interrupted)
        status, _, err = ask(*arguments)
    assert status == 130
    assert "the same command with --resume continues" in err
    assert ask(*arguments, "--resume")[0] == 0


def test_a_message_is_no_longer_than_a_person_reads(ask: Ask, tmp_path: Path) -> None:
    """The remedy at its end stays."""
    (tmp_path / "t.csv").write_text(f"{'x' * 70_000},label\nC,1\n")
    status, _, told = ask("train", "--dataset", tmp_path / "t.csv")
    assert status == 2
    assert len(told) < 1_020
    assert told.startswith("cores: ")
    assert told.rstrip().endswith("xxx, label)")


def test_a_full_disk_is_told_in_one_line(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    arguments = ["train", *QUICK, "--out", tmp_path / "run"]
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        status, _, err = ask(*arguments)
    assert status == 2
    assert "No space left on device" in err
    shutil.rmtree(tmp_path / "run")
    assert ask(*arguments)[0] == 0


def test_folds_train_a_run_each_and_tell_their_mean(ask: Ask, tmp_path: Path) -> None:
    arguments = ["train", *QUICK, "--folds", 2, "--out", tmp_path / "folds"]
    status, out, err = ask(*arguments, "--json")
    assert status == 0, err
    found = json.loads(out)
    assert len(found["folds"]) == 2
    accuracies = [fold["accuracy"] for fold in found["folds"]]
    assert found["mean"]["accuracy"] == pytest.approx(sum(accuracies) / 2)
    assert found["std"]["accuracy"] is not None
    status, out, _ = ask(*arguments)  # both are there already
    assert status == 0
    assert "±" in out
    assert ask("evaluate", tmp_path / "folds" / "fold2", "--device", "cpu")[0] == 0
    assert ask("train", *QUICK, "--folds", 1)[2] == (
        "cores: --folds must be 0 or lie in [2, 1000], got 1\n"
    )
    assert ask("train", *QUICK, "--workers", 2)[2] == (
        "cores: --workers is for --folds; one run has one process\n"
    )


def test_short_options_choose_the_split_and_the_balance(ask: Ask, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert ask("train", *QUICK, "--class-weights", "--out", run)[0] == 0
    config = json.loads((run / "config.json").read_text())["config"]
    assert config["training"]["balance"] == "always"
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert all("selection_balanced_accuracy" in epoch for epoch in history)
    metrics = json.loads((run / "metrics.json").read_text())
    assert {"roc_auc", "average_precision", "f1", "mcc"} <= set(metrics)
    status, _, err = ask("train", *QUICK, "--split-type", "scaffold", "--out", tmp_path / "other")
    assert status == 2
    assert err.startswith("cores: motifs has no SMILES to find scaffolds in")
