"""Bad input ends in a right result or in one clear line: `make fuzz`, and a little in `make test`.

With `FUZZ_SECONDS` in the environment, cases are drawn for so long instead of three of each target.
"""

import gc
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fuzz
import fuzz_targets
from cores.errors import UserError
from fuzz_damage import FORMS, damaged
from fuzz_targets import TARGETS, Case, Valid, small_world, strategies, valid_cases

SECONDS = float(os.environ.get("FUZZ_SECONDS", 0))
KEPT = Path("runs/fuzz").absolute()
"""Where `make fuzz` leaves the files of a case that fails."""


@dataclass(repr=False)  # hypothesis would print all files
class World:
    """The targets, where their cases run, and when the cases of each target began."""

    valid: dict[str, Valid]
    cases: dict[str, st.SearchStrategy[Case]]
    scratch: Path
    begun: defaultdict[str, list[float]]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    scratch = tmp_path_factory.mktemp("fuzz").resolve()
    with small_world(scratch):
        valid = valid_cases()
        gc.freeze()  # pages that a fork does not touch are not copied
        yield World(valid, strategies(valid), scratch, defaultdict(list))


@pytest.mark.parametrize("name", TARGETS)
@settings(
    max_examples=10**6 if SECONDS else 3,
    derandomize=not SECONDS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_no_case_of_any_target_fails(fuzzed: World, name: str, data: st.DataObject) -> None:
    case = data.draw(fuzzed.cases[name])
    begun = fuzzed.begun[name]
    begun.append(time.monotonic())
    if SECONDS and begun[-1] > begun[0] + SECONDS / len(TARGETS):
        pytest.skip(f"the time is up: {name} has no fault in {len(begun) - 1} cases")
    outcome = fuzz.run(case, fuzzed.scratch)
    if SECONDS and outcome.fault:
        case.write(KEPT / name)
        (KEPT / name / "printed.txt").write_text(outcome.printed)
    assert not outcome.fault, outcome.printed


def test_every_target_has_its_cases(fuzzed: World) -> None:
    assert set(fuzzed.cases) == set(TARGETS)


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
    fuzzed: World,
    reader: Callable[..., None],
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fuzz_targets, "load_dataset", reader)
    monkeypatch.setattr(fuzz, "SECONDS", 1)
    monkeypatch.setattr(fuzz, "WAITING", 3)
    outcome = fuzz.run(fuzzed.valid["data"].cases[0], fuzzed.scratch)
    assert re.match(fault, outcome.fault), outcome.fault
    assert "$ cores read" in outcome.printed


def test_damage_reaches_what_is_behind_a_checksum(fuzzed: World) -> None:
    """Most damaged checkpoints are whole files that hold something else."""
    (case, *_), _ = fuzzed.valid["checkpoint"]
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
