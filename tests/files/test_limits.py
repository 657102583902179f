"""What a file may ask for has limits, which the environment raises; pipes are not read."""

import os
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cores.errors import UserError, out_of_memory
from cores.files import read_json
from cores.files.limits import (
    BLOCK,
    LINE,
    MEMORY,
    Allowance,
    all_lines,
    check_regular,
    limited_lines,
)


def test_a_limit_is_raised_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MEMORY.value == 2 * 2**30
    with pytest.raises(UserError, match=r"^it needs 3 GB, more than 2G; .*raise CORES_MAX_MEMORY$"):
        MEMORY.check(3 * 10**9, "it needs 3 GB")
    monkeypatch.setenv("CORES_MAX_MEMORY", "3g")
    MEMORY.check(3 * 10**9, "it needs 3 GB")
    for wrong in ("much", "-1", "2 GB", "9" * 40):
        monkeypatch.setenv("CORES_MAX_MEMORY", wrong)
        with pytest.raises(UserError, match="CORES_MAX_MEMORY must be a number such as 2G, got"):
            MEMORY.check(1, "it")


def test_a_default_can_be_lowered_for_a_while_but_not_what_the_user_has_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with MEMORY.by_default("1K"):
        assert MEMORY.value == 1024
        with pytest.raises(UserError, match="raise CORES_MAX_MEMORY"):
            MEMORY.check(2000, "it needs 2 KB")
    assert MEMORY.value == 2 * 2**30
    monkeypatch.setenv("CORES_MAX_MEMORY", "3G")
    with MEMORY.by_default("1K"):
        assert MEMORY.value == 3 * 2**30
    assert os.environ["CORES_MAX_MEMORY"] == "3G"


def test_of_a_long_line_no_more_is_read_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LINE.variable, "10")
    file = StringIO("short\n" + "x" * 1000)
    lines = limited_lines(file.readline, "a.txt")
    assert next(lines) == "short\n"
    with pytest.raises(UserError, match=r"a.txt: line 2 has 11 characters or more, more than 10"):
        next(lines)
    assert file.tell() == len("short\n") + 11


def test_many_short_lines_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY.variable, "1K")
    file = StringIO("1\n" * 10**6)
    with pytest.raises(UserError, match=r"^a.zip unpacks to 256.0 KiB or more, more than 1K"):
        list(all_lines(file.read, "a.txt", Allowance("a.zip")))
    assert file.tell() == BLOCK


@given(text=st.text(st.sampled_from("ab\n"), max_size=40), block=st.integers(1, 9))
def test_lines_are_the_same_however_they_are_read(text: str, block: int) -> None:
    file = StringIO(text)
    found = list(all_lines(lambda size: file.read(block), "a.txt"))
    assert found == [line.rstrip("\n") for line in StringIO(text)]


def test_a_long_line_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LINE.variable, "10")
    for text in ("a\n\n" + "x" * 11, "a\n\n" + "x" * 11 + "\nb\n"):
        with pytest.raises(UserError, match=r"a.txt: line 3 has 11 characters or more"):
            list(all_lines(StringIO(text).read, "a.txt"))


def test_a_pipe_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.json")
    with pytest.raises(UserError, match=r"metrics.json is no regular file"):
        read_json(tmp_path / "metrics.json")
    with pytest.raises(UserError, match="is no regular file"):
        check_regular(Path(os.devnull))


def test_json_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    path.write_text("[" * 100_000)
    monkeypatch.setenv(LINE.variable, "10")
    with pytest.raises(UserError, match=r"config.json has 97.7 KiB, more than 10"):
        read_json(path)


def test_every_lack_of_memory_is_told_in_a_line() -> None:
    on_cpu = (
        "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 17179869184 bytes. Error code 12 (Cannot allocate memory)"
    )
    told = out_of_memory(RuntimeError(on_cpu))
    assert told is not None
    assert told.startswith("out of memory: 17179869184 bytes were asked for; fewer columns")
    on_gpu = type("OutOfMemoryError", (RuntimeError,), {})
    told = out_of_memory(on_gpu("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has"))
    assert told is not None
    assert "2.00 GiB were asked for" in told
    told = out_of_memory(MemoryError("Unable to allocate 7.45 GiB for an array with shape (10,)"))
    assert told is not None
    assert "7.45 GiB were asked for" in told
    assert out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied")) is None


def test_what_asked_for_the_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: object, count: int) -> None:
        raise MemoryError

    monkeypatch.setattr(Allowance, "take", take)
    with pytest.raises(MemoryError) as found:
        list(all_lines(StringIO("1\n").read, "a.txt", Allowance("a")))
    assert "too much was asked for by files/limits.py (all_lines)" in str(
        out_of_memory(found.value)
    )
