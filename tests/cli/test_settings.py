"""Settings from options and files: ranks, old names, files of one group, models' own settings."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cores import Cores
from cores.cli.commands import all_commands
from cores.cli.parse import parse
from cores.cli.settings import run_config
from cores.config import RunConfig, SetsConfig
from cores.config.names import INTRODUCED_AS
from cores.config.presets import own_data_settings, preset_config
from cores.errors import UserError
from cores_paper.models.settings import GSATConfig, PoolConfig

Ask = Callable[..., tuple[int, str, str]]


def config(*arguments: object) -> RunConfig:
    return run_config(parse(["train", *map(str, arguments)], all_commands())[1])


def setting(config: RunConfig, name: str) -> object:
    group, _, key = name.partition(".")
    return config.settings[group][key]


def test_without_options_the_defaults_hold() -> None:
    assert config("--model", "gnn") == RunConfig(model="gnn")
    assert config() == preset_config("motifs", "cores-node", "gin", "default", {})


def test_a_loss_that_is_named_is_promised(ask: Ask) -> None:
    dial = ("--reward.dial", "true")
    reward = config(*dial, "--max-loss", "0.02").reward
    assert (reward.max_loss, reward.promised) == (0.02, True)
    assert not config(*dial).reward.promised
    own = config("--max-loss", "0.05").reward
    assert (own.max_loss, own.promised, own.dial) == (0.05, True, True)
    assert not config(*dial, "--reward.max_loss", "0.1").reward.promised
    assert not config(*dial, "--max-loss", "0.1", "--reward.promised", "false").reward.promised
    for options, told in (
        (
            ("--reward.dial", "false", "--max-loss", "0.02"),
            "--max-loss is promised of a model with a dial; set reward.dial",
        ),
        ((*dial, "--max-loss", "0"), "--max-loss must be positive to be promised, got 0.0"),
    ):
        status, out, err = ask("train", *options)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert told in err


def test_a_file_of_the_users_has_the_defaults_of_a_named_dataset() -> None:
    options = parse(["train"], all_commands())[1]
    assert run_config(options, own_data_settings(500)) == config()
    large = run_config(options, own_data_settings(100_000))
    assert (large.warm_up_epochs, large.training.epochs) == (30, 120)
    assert large.reward == config().reward


def test_one_lambda_or_no_referees_mean_no_dial(tmp_path: Path) -> None:
    """With a dial, a lambda of the training would be ignored without a word."""
    assert config().reward.dial
    (tmp_path / "one.toml").write_text("[reward]\nlam = 0.3\n")
    for asked in (("--lam", "0.3"), ("--settings", tmp_path / "one.toml")):
        assert (config(*asked).reward.lam, config(*asked).reward.dial) == (0.3, False)
    assert not config("--reward.referees", "0").reward.dial
    assert config("--lam", "0.3", "--reward.dial", "true").reward.dial
    assert not Cores(lam=0.3)._config(80).reward.dial
    assert Cores()._config(80).reward.dial


def test_connected_needs_no_number_and_none_below_1(ask: Ask) -> None:
    assert config().reward.max_pieces == 0
    assert config("--connected").reward.max_pieces == 1
    assert config("--connected", "--seed", "3").reward.max_pieces == 1
    assert config("--connected", "2").reward.max_pieces == 2
    for number in ("0", "-1"):
        status, out, err = ask("train", "--connected", number)
        assert (status, out) == (2, "")
        assert err == f"cores: --connected must be at least 1, got {number}\n"


@pytest.mark.parametrize("new", INTRODUCED_AS)
def test_an_old_option_is_taken_and_its_new_name_told(
    new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    old = INTRODUCED_AS[new]
    assert setting(config(f"--{old}", "0.3"), new) == 0.3
    assert setting(config(f"--{old}=0.4"), new) == 0.4
    assert capsys.readouterr().err == f"note: --{old} is now --{new}\n" * 2


def test_an_old_name_in_a_file_is_taken_and_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "old.toml"
    file.write_text("[diet]\nmix = 0.5\nwarm_up = 0.2\n[classifier_data]\ndistillation = 0.1\n")
    found = config("--settings", file, "--classifier_data.warm_up", "0.3").classifier_data
    assert (found.mix, found.warm_up, found.distillation) == (0.5, 0.3, 0.1)
    assert capsys.readouterr().err == (
        f"note: diet.mix in {file} is now classifier_data.mix\n"
        f"note: diet.warm_up in {file} is now classifier_data.warm_up\n"
    )
    assert config("--settings", file, "--diet.mix", "0.6").classifier_data.mix == 0.6


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("network.toml", "hidden_dim = 8\nnum_layers = 1\npooling = ['add']\n"),
        ("network.yaml", "hidden_dim: 8\nnum_layers: 1\npooling: [add]\n"),
        ("network.json", '{"hidden_dim": 8, "num_layers": 1, "pooling": ["add"]}'),
    ],
)
def test_a_group_comes_from_a_file_below_options_and_above_settings(
    tmp_path: Path, name: str, text: str
) -> None:
    group, settings = tmp_path / name, tmp_path / "all.toml"
    group.write_text(text)
    settings.write_text("[network]\nhidden_dim = 4\ndropout = 0.1\n[training]\nepochs = 7\n")
    found = config(
        "--network.num_layers", "2", "--network", group, "--settings", settings, "--split", "2"
    )
    assert found.network.hidden_dim == 8
    assert found.network.num_layers == 2
    assert found.network.pooling == ("add",)
    assert found.network.dropout == 0.1
    assert (found.training.epochs, found.split) == (7, 2)
    assert config(f"--network={group}").network.hidden_dim == 8


def test_an_old_name_in_a_groups_file_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ppo.toml"
    file.write_text("floor = 0.1\n")
    assert config("--ppo", file).ppo.min_probability == 0.1
    assert capsys.readouterr().err == f"note: ppo.floor in {file} is now ppo.min_probability\n"


BOMB = "\n".join(
    ["hidden_dim:", "- &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"- &a{at} [{', '.join(9 * [f'*a{at - 1}'])}]" for at in range(1, 10)]
)
"""A kilobyte of YAML that stands for a few thousand million values."""


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (("none.toml", None), "--network: cannot read TMP/none.toml: No such file"),
        (("bad.json", "{"), "--network TMP/bad.json is not valid JSON"),
        (("bad.yaml", "a: [1"), "--network TMP/bad.yaml is not valid YAML"),
        (("bomb.yaml", BOMB), "--network TMP/bomb.yaml holds more than 10000 values"),
        (("loop.yaml", "hidden_dim: &a [*a]"), "--network TMP/loop.yaml holds more than 10000"),
        (("long.yaml", f"# {'-' * 2**18}"), "--network: TMP/long.yaml has 262146 characters"),
        (("bad.toml", "a ="), "--network TMP/bad.toml is not valid TOML"),
        (("list.json", "[1]"), "--network TMP/list.json must hold settings by name, got a list"),
        (("typo.toml", "hiden_dim = 8"), "unknown setting 'network.hiden_dim'; did you mean"),
        (("long.toml", f"hidden_dim = {'9' * 5000}"), "5000 digits\n"),
        (
            ("long.toml", f"hidden_dim = 0x{'f' * 5000}"),
            "'network.hidden_dim' is a number of more than",
        ),
        (("long.toml", f"dropout = 0x{'f' * 5000}"), "'network.dropout' is a number of more than"),
        (
            ("long.toml", f"pooling = [0x{'f' * 5000}]"),
            "'network.pooling' is a number of more than",
        ),
        (("kind.yaml", "hidden_dim: x"), "setting 'network.hidden_dim' must be of type int"),
    ],
)
def test_a_wrong_file_of_a_group_gets_one_line(
    ask: Ask, tmp_path: Path, file: tuple[str, str | None], message: str
) -> None:
    name, text = file
    if text is not None:
        (tmp_path / name).write_text(text)
    status, out, err = ask("train", "--network", tmp_path / name, "--out", tmp_path / "run")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message.replace("TMP", str(tmp_path)) in err
    assert "__path__" not in err


def test_a_group_without_a_file_is_refused(ask: Ask) -> None:
    status, _, err = ask("train", "--network")
    assert status == 2
    assert "argument --network: expected one argument; see cores train --help" in err


def test_a_models_own_settings_have_options_of_its_group() -> None:
    found = config("--model", "gsat", "--gsat.attention", "edge", "--sagpool.ratio", "0.3")
    assert found.model_config == GSATConfig(attention="edge")
    assert config("--model", "sagpool", "--sagpool.ratio", "0.3").model_config == PoolConfig(0.3)
    assert config("--sagpool.ratio", "0.3").model_config is None
    with pytest.raises(UserError, match=r"pool\.ratio must lie in \(0, 1\], got 3\.0"):
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
    monkeypatch.setattr(runs, "evaluate_run", lambda _, **given: asked.append(given) or {})
    for options in ([], ["--per-class", "--score", "raps"], ["--no-per-class"]):
        ask("evaluate", run, "--json", *options)
    assert [(each["score"], each["per_class"]) for each in asked] == [
        (None, None),
        ("raps", True),
        (None, False),
    ]
    status, _, err = ask("evaluate", run, "--score", "best")
    assert status == 2
    assert "--score: expected one of lac, aps, raps, randomised-aps" in err
