"""Help: short where people look first, complete where they ask for it, and quick."""

import dataclasses
import subprocess
import sys
from collections.abc import Callable

import pytest

from cores import __version__
from cores.__main__ import main
from cores.cli.commands import all_commands
from cores.cli.settings import settings_groups
from cores.config import RunConfig
from cores.config.models import CONVS, MODELS

SHOWN = (
    *("dataset", "model", "conv", "preset", "split", "seed", "epochs", "desired-ratio", "lam"),
    *("members", "sufficiency", "parts", "class-from", "proposer"),
    *("alpha", "score", "per-class", "out", "settings", "data-root", "device", "json"),
    *("import", "split-type", "class-weights", "help-all"),
)

Printed = Callable[..., str]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Printed:
    """What a command prints before it exits, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def printed(*arguments: str) -> str:
        with pytest.raises(SystemExit) as exit_info:
            main(arguments)
        assert exit_info.value.code == 0
        return capsys.readouterr().out

    return printed


@pytest.mark.parametrize("command", [each.name for each in all_commands()])
def test_every_command_has_a_line_and_a_help_of_one_screen(printed: Printed, command: str) -> None:
    assert f"\n  {command} " in printed("--help")
    lines = printed(command, "--help").splitlines()
    assert lines[0].startswith(f"usage: cores {command}")
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", ["train", "search"])
def test_help_shows_the_options_people_use_and_where_the_rest_is(
    printed: Printed, command: str
) -> None:
    text = printed(command, "--help")
    for option in SHOWN:
        assert f"\n  --{option}" in text
    assert "--help-all            List every setting, and exit." in text
    assert "--ppo.clip" not in text
    words = text.replace(",", " ").split()
    assert {*MODELS, *CONVS} <= set(words), "models and convs come from the registry"
    assert "(default: cores-node)" in " ".join(text.split())


def test_help_all_lists_every_setting_once_and_no_inner_name(printed: Printed) -> None:
    text = printed("train", "--help-all")
    settings = [
        f"{group}.{field.name}"
        for group, kind in settings_groups().items()
        for field in dataclasses.fields(kind)
    ]
    assert {"sagpool.ratio", "gsat.attention", "ppo.clip", "sets.per_class"} <= set(settings)
    for name in settings:
        assert text.count(f"\n  --{name} ") == 1, name
    for field in dataclasses.fields(RunConfig):
        if field.name not in ("model_config", "preset_settings", *settings_groups()):
            assert f"\n  --{field.name} " in text
    assert "model_config" not in text
    assert "preset_settings" not in text


def test_the_version_is_the_packages(printed: Printed) -> None:
    assert printed("--version") == f"cores {__version__}\n"


def test_an_unknown_command_gets_the_nearest_one(
    ask: Callable[..., tuple[int, str, str]],
) -> None:
    assert ask("trian") == (2, "", "cores: unknown command 'trian'; did you mean train?\n")
    assert ask() == (2, "", "cores: which command? cores --help lists them\n")


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help-all"]])
def test_help_does_not_wait_for_torch(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from cores.__main__ import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit:\n"
        "    sys.exit('torch' in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_the_commands_of_this_package_do_without_the_papers() -> None:
    script = (
        "import sys\n"
        "from cores.cli import main\n"
        "from cores.cli.commands import COMMANDS\n"
        "assert main(['reproduce', 'all'], COMMANDS) == 2\n"
        "assert not [name for name in sys.modules if name.startswith('cores_paper')]\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert b"unknown command 'reproduce'" in ended.stderr
