"""The faults that ``make mutants`` puts in, and what it makes of their outcomes."""

import json
from pathlib import Path

import pytest

import mutants
from mutants import Module, State, Trial, report, row
from mutations import mutated, mutations

PROGRAM = '''
"""A docstring."""

LIMIT = 0.5


def choose(values: "Float[Tensor, '3']", most: int = 2) -> str:
    """Another one."""
    if not values:
        raise ValueError("none of 3")
    total = -1
    for value in values:
        total += value
    print(f"{total + 1}")
    return "a" if max(values) < total and most is not None else order(values, stable=True, by=total)
'''


def changes(source: str) -> set[str]:
    return {f"{fault.before} → {fault.after}" for fault in mutations(source)}


def test_every_kind_of_fault_is_among_them() -> None:
    assert changes(PROGRAM) == {
        "2 → 1",
        "not values → values",
        "raise ValueError('none of 3') → pass",
        "-1 → 0",
        "total += value → total -= value",
        "total += value → pass",
        "print(f'{total + 1}') → pass",
        "'a' → 'a?'",
        "max(values) → min(values)",
        "max(values) < total → max(values) <= total",
        "max(values) < total → max(values) >= total",
        "max(values) < total and most is not None → max(values) < total or most is not None",
        "most is not None → most is None",
        "'a' if max(values) < total and most is not None else order(values, stable=True, by=total) "
        "→ 'a' if not (max(values) < total and most is not None) else order(values, stable=True, "
        "by=total)",
        "stable=True → stable=False",
        "order(values, stable=True, by=total) → order(values, stable=True)",
    }


def test_what_is_said_and_what_is_set_is_left_alone() -> None:
    kept = ("A docstring", "LIMIT", "Float", "none of 3", "total + 1")
    for fault in mutations(PROGRAM):
        source = mutated(PROGRAM, fault.number)
        assert source != mutated(PROGRAM, (fault.number + 1) % len(mutations(PROGRAM)))
        compile(source, "program", "exec")
        missing = [words for words in kept if words not in source]
        assert missing in ([], ["none of 3"], ["total + 1"])  # the last two with their statement


def test_a_fault_knows_its_function_and_its_line() -> None:
    (fault,) = mutations("class Sum:\n    def of(self, a):\n        return a + self.b  # a sum\n")
    assert (fault.function, fault.line, fault.text) == ("Sum.of", 3, "return a + self.b")


def test_every_module_and_its_tests_are_there() -> None:
    for name, tests in mutants.TESTS.items():
        assert Module(name).path.exists()
        assert all((mutants.ROOT / test.partition("::")[0]).exists() for test in tests)


def test_the_survivors_that_are_explained_exist() -> None:
    """A line of docs/mutants.md ends with the place it speaks of."""
    known = {row(module, fault) for module in map(Module, mutants.TESTS) for fault in module.faults}
    lines = mutants.HARMLESS.read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if "→" in line and line.startswith("| ")]
    assert listed
    for line in listed:
        fault, _, reason = line.rstrip("| ").rpartition(" | ")
        assert f"{fault} |" in known, line
        assert reason, line


def test_survivors_are_told_unless_they_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants, "HARMLESS", tmp_path / "mutants.md")
    module = Module("reward")
    state = State(tmp_path / "state.jsonl")
    first, second, *others = (Trial(module, fault.number) for fault in module.faults)
    for trial in (first, second):
        state.record(trial, "survived", 1.0)
    for trial in others:
        state.record(trial, "killed", 1.0)
    again = State(state.path)
    again.read()
    assert again.outcomes == state.outcomes
    mutants.HARMLESS.write_text(f"{row(module, module.faults[0])} it does no harm |\n")
    lines = list(report([module], again))
    total = len(module.faults)
    share = f"{100 * (total - 2) / total:.1f} %"
    assert f"| reward | {total} | {total} | {total - 2} | 2 | {share} |" in lines
    assert lines[-1].startswith(row(module, module.faults[1]))
    assert row(module, module.faults[0]) not in "\n".join(lines)
    assert not mutants.noticed_enough([module], again)
    mutants.HARMLESS.write_text(
        "".join(f"{row(module, fault)} it does no harm |\n" for fault in module.faults)
    )
    assert mutants.noticed_enough([module], again)


def test_a_module_that_changed_is_tried_again(tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    old = {"module": "reward", "digest": "another", "number": 0}
    state.write_text(json.dumps({**old, "outcome": "killed", "seconds": 1.0}) + "\n")
    known = State(state)
    known.read()
    assert mutants.counts(Module("reward"), known)[1] == 0
