"""``make fuzz`` in small: no case of any target fails, and a planted fault is found."""

import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest
import torch

import fuzz
import fuzz_targets
from cores.errors import UserError
from fuzz import Fuzzer
from fuzz_damage import FORMS, damaged
from fuzz_targets import Case, small_world, targets


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzer]:
    scratch = tmp_path_factory.mktemp("fuzz").resolve()
    with small_world(scratch):
        yield Fuzzer(targets(), seed=0, scratch=scratch)


def test_no_case_of_any_target_fails(fuzzer: Fuzzer) -> None:
    for name in fuzzer.sources:
        for number in range(2):
            case = fuzzer.case(name, number)
            outcome = fuzz.run(case, fuzzer.scratch)
            assert not outcome.fault, f"{case.command}: {outcome.printed}"


def test_a_case_comes_again_from_its_seed(fuzzer: Fuzzer) -> None:
    for name in fuzzer.sources:
        first = fuzzer.case(name, 3)
        fuzz_targets._examples.cache_clear()
        assert fuzzer.case(name, 3) == first
    others = [Fuzzer(fuzzer.sources, seed, fuzzer.scratch).case("npz", 3) for seed in range(5)]
    assert any(other != others[0] for other in others)


def no_value(path: str, **_: object) -> NoReturn:
    raise ValueError("a fault")


def no_end(path: str, **_: object) -> NoReturn:
    while True:
        pass


def no_progress(path: str, **_: object) -> None:
    time.sleep(1000)


def no_bounds(path: str, **_: object) -> None:
    torch.zeros(3 * 2**30, dtype=torch.uint8)


def no_silence(path: str, **_: object) -> NoReturn:
    print("UserWarning: oh", file=sys.stderr)
    raise UserError("refused")


def no_shame(path: str, **_: object) -> NoReturn:
    print("\x1b[2J")
    raise UserError("refused")


def no_care(path: str, **_: object) -> NoReturn:
    Path(".rows.csv.0123456789ab.tmp").touch()
    raise UserError("refused")


@pytest.mark.parametrize(
    ("reader", "fault"),
    [
        (no_value, "ends with status 99 in .*: ValueError: a fault"),
        (no_end, "hangs in cores/cli"),
        (no_progress, "hangs in cores/cli"),
        (no_bounds, "takes too much memory"),
        (no_silence, "warns: UserWarning: oh"),
        (no_shame, "prints what a terminal obeys"),
        (no_care, "leaves half a file: .rows.csv"),
    ],
)
def test_a_planted_fault_is_found(
    fuzzer: Fuzzer,
    reader: Callable[..., None],
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(fuzz_targets, "load_dataset", reader)
    monkeypatch.setattr(fuzz, "SECONDS", 1)
    monkeypatch.setattr(fuzz, "WAITING", 3)
    planted = Fuzzer({"npz": fuzzer.sources["npz"]}, 0, fuzzer.scratch)
    planted.step(keep=tmp_path)
    (found,) = planted.faults
    assert planted.tallies["npz"].failed == 1
    assert re.match(fault, found), found
    assert found in capsys.readouterr().out
    (kept,) = tmp_path.iterdir()
    assert "$ cores read" in (kept / "printed.txt").read_text()


def test_damage_reaches_what_is_behind_a_checksum(fuzzer: Fuzzer) -> None:
    """Most damaged checkpoints are whole files that hold something else."""
    case = fuzzer.sources["checkpoint"].cases[0]
    assert isinstance(case, Case)
    name = "run/checkpoint.safetensors"
    whole = 0
    for number in range(40):
        content = damaged(name, case.files[name], [b""], Random(number))
        try:
            FORMS[".safetensors"].read(content)
            whole += content != case.files[name]
        except UserError:
            continue
    assert whole >= 5
