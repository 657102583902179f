"""`cores search`: mistakes in one line, in the words of the command line."""

from collections.abc import Callable
from pathlib import Path

from cores.config.presets import preset_config
from cores_paper.search import _study

Ask = Callable[..., tuple[int, str, str]]


def test_a_folder_of_another_search_is_refused(ask: Ask, tmp_path: Path) -> None:
    _study(preset_config("motifs", "gnn", "gin", "default", {}), tmp_path)
    status, out, err = ask("search", "--model", "mlp", "--out", tmp_path)
    assert (status, out) == (2, "")
    expected = f"cores: {tmp_path} holds a search of other settings; choose another --out\n"
    assert err == expected


def test_a_number_below_one_is_refused(ask: Ask) -> None:
    for option in ("--trials", "--workers"):
        status, _, err = ask("search", option, "0")
        assert (status, err) == (2, f"cores: {option} must be positive, got 0\n")
