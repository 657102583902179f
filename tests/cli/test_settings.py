"""Settings from options and files: which counts, wrong files, models' own settings."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cores.cli.command import parse
from cores.cli.commands import all_commands
from cores.cli.settings import run_config
from cores.config import RunConfig, SetsConfig
from cores.config.presets import own_data_settings, preset_config
from cores.errors import UserError
from cores_paper.models.settings import GSATConfig, PoolConfig

Ask = Callable[..., tuple[int, str, str]]


def config(*arguments: object) -> RunConfig:
    return run_config(parse(["train", *map(str, arguments)], all_commands())[1])


def test_without_options_the_defaults_hold() -> None:
    assert config("--model", "gnn") == RunConfig(model="gnn")
    assert config() == preset_config("motifs", "cores-node", "gin", "default", {})


def test_committee_and_parts_have_short_options(ask: Ask) -> None:
    found = config("--members", "3", "--sufficiency", "0.9", "--parts", "cut")
    assert found.committee.members == 3
    assert (found.explanation.sufficiency, found.explanation.parts) == (0.9, "cut")
    found = config("--class-from", "part", "--proposer", "effects", "--lam", "0.3")
    assert (found.explanation.class_from, found.explanation.proposer) == ("part", "effects")
    assert found.reward.lam == 0.3
    for options, told in (
        (("--sufficiency", "0.4"), r"--sufficiency must lie in [0.5, 1), got 0.4"),
        (("--members", "0"), "committee.members must lie in [1, 100], got 0"),
        (("--parts", "smallest"), "--parts: invalid choice: 'smallest'"),
        (("--max-loss", "0.1"), "unrecognized arguments: --max-loss"),
    ):
        status, out, err = ask("train", *options)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert told in err


def test_a_file_of_the_users_has_the_defaults_of_a_named_dataset() -> None:
    options = parse(["train"], all_commands())[1]
    assert run_config(options, own_data_settings(500)) == config()
    large = run_config(options, own_data_settings(100_000))
    assert (large.warm_up_epochs, large.training.epochs) == (30, 60)
    assert large.reward == config().reward


def test_connected_needs_no_number_and_none_below_1(ask: Ask) -> None:
    assert config().reward.max_pieces == 0
    assert config("--connected").reward.max_pieces == 1
    assert config("--connected", "--seed", "3").reward.max_pieces == 1
    assert config("--connected", "2").reward.max_pieces == 2
    for number in ("0", "-1"):
        status, out, err = ask("train", "--connected", number)
        assert (status, out) == (2, "")
        assert err == f"cores: --connected must be at least 1, got {number}\n"


def test_old_names_are_unknown(tmp_path: Path, ask: Ask) -> None:
    assert "did you mean --ppo.clip" in ask("train", "--ppo.cli", "0.3")[2]
    assert "unrecognized arguments: --diet.mix" in ask("train", "--diet.mix", "0.3")[2]
    (tmp_path / "old.toml").write_text("[diet]\nmix = 0.5\n")
    status, _, err = ask("train", "--settings", tmp_path / "old.toml")
    assert (status, "unknown setting 'diet'" in err) == (2, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mine.toml", "split = 3\n[network]\nhidden_dim = 8\npooling = ['add']\n"),
        ("mine.JSON", '{"split": 3, "network": {"hidden_dim": 8, "pooling": ["add"]}}'),
    ],
)
def test_settings_come_from_a_file_below_options(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = config("--network.num_layers", "2", "--settings", tmp_path / name, "--split", "2")
    assert (found.network.hidden_dim, found.network.num_layers) == (8, 2)
    assert (found.network.pooling, found.split) == (("add",), 2)


def test_the_last_of_equal_options_counts_and_a_short_one_more() -> None:
    assert config("--seed", "1", "--seed", "2").seed == 2
    assert config("--epochs", "8", "--training.epochs", "9").training.epochs == 8


def test_a_list_has_commas_with_brackets_or_without() -> None:
    for text in ("mean,add", "[mean, add]"):
        assert config("--network.pooling", text).network.pooling == ("mean", "add")
    with pytest.raises(UserError, match=r"'network\.pooling' must be one of mean, add, got 'max'"):
        config("--network.pooling", "add,max")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (("none.toml", None), "--settings: cannot read TMP/none.toml: No such file"),
        (("bad.json", "{"), "--settings TMP/bad.json is not valid JSON"),
        (("deep.json", "[" * 200_000), "--settings TMP/deep.json is not valid JSON"),
        (("any.yaml", "seed: 1"), "--settings TMP/any.yaml is not valid TOML"),
        (("bad.toml", "a ="), "--settings TMP/bad.toml is not valid TOML"),
        (("list.json", "[1]"), "--settings TMP/list.json must hold settings by name, got a list"),
        (("typo.toml", "[network]\nhiden_dim = 8"), "unknown setting 'network.hiden_dim'; did you"),
        (("long.toml", f"seed = {'9' * 5000}"), "5000 digits\n"),
        (("long.toml", f"seed = 0x{'f' * 5000}"), "'seed' is a number of more than"),
        (("long.toml", f"alpha = 0x{'f' * 5000}"), "'alpha' is a number of more than"),
        (
            ("long.toml", f"[network]\npooling = [0x{'f' * 5000}]"),
            "'network.pooling' is a number of more than",
        ),
        (("kind.toml", "seed = 'x'"), "setting 'seed' must be of type int"),
        (("group.toml", "network = 3"), "setting 'network' is a group of settings, got 3"),
    ],
)
def test_a_wrong_file_gets_one_line(
    ask: Ask, tmp_path: Path, file: tuple[str, str | None], message: str
) -> None:
    name, text = file
    if text is not None:
        (tmp_path / name).write_text(text)
    status, out, err = ask("train", "--settings", tmp_path / name, "--out", tmp_path / "run")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message.replace("TMP", str(tmp_path)) in err


def test_a_models_own_settings_have_options_of_its_group() -> None:
    found = config("--model", "gsat", "--gsat.attention", "edge", "--sagpool.ratio", "0.3")
    assert found.model_config == GSATConfig(attention="edge")
    assert config("--model", "sagpool", "--sagpool.ratio", "0.3").model_config == PoolConfig(0.3)
    assert config("--sagpool.ratio", "0.3").model_config is None
    with pytest.raises(UserError, match=r"`ratio` must lie in \(0, 1\], got 3\.0"):
        config("--sagpool.ratio", "3")  # wrong, whether or not the model reads it


def test_prediction_sets_have_short_options() -> None:
    assert config("--score", "raps", "--per-class").sets == SetsConfig("raps", True)
    assert config("--sets.per_class", "true", "--no-per-class").sets == SetsConfig()


def test_evaluate_takes_another_score_and_a_quantile_per_class(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    arguments = ["--model", "gnn", "--epochs", "1", "--network.hidden_dim", "8", "--out", run]
    assert ask("train", *arguments, "--device", "cpu", "--per-class")[0] == 0

    def metrics(*options: str) -> dict[str, float]:
        return json.loads(ask("evaluate", run, "--json", "--device", "cpu", *options)[1])

    assert metrics() == metrics("--per-class", "--score", "lac")
    assert metrics() != metrics("--score", "aps")
    from cores.runs import run as runs

    asked: list[dict[str, object]] = []
    monkeypatch.setattr(
        runs, "evaluate_run", lambda _, options, **given: asked.append(vars(options)) or {}
    )
    for options in ([], ["--per-class", "--score", "raps"], ["--no-per-class"]):
        ask("evaluate", run, "--json", *options)
    assert [(each["score"], each["per_class"]) for each in asked] == [
        (None, None),
        ("raps", True),
        (None, False),
    ]
    status, _, err = ask("evaluate", run, "--score", "best")
    assert status == 2
    assert "--score: invalid choice: 'best' (choose from 'lac', 'aps'" in err
