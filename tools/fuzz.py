"""Run a command on strange files and check how it ends: the checks behind ``make fuzz``.

A process that has imported everything forks for each case; the fork runs a command of the program
on the files. A case is a fault if the command ends in a traceback or a warning, is not over in
time, takes too much memory, says more than one line when it refuses, prints what a terminal obeys,
or leaves half a file. ``tests/tools/test_fuzz.py`` draws the cases with hypothesis.
"""

import faulthandler
import json
import os
import re
import resource
import shutil
import signal
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from cores.files import is_leftover
from fuzz_targets import Case

SECONDS = 20
"""CPU time that a case may take."""
WAITING = 10
"""How many times as long it may take by the clock: other programs run, too."""
MEMORY = 2 * 2**30
"""Bytes that it may take, with all that is imported."""
LONGEST = 1_100
"""Characters of a line that a person still reads."""
NEW = "new.*"
"""Files that a command may write only if it succeeds."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Outcome:
    """How a case ended."""

    fault: str
    """What is wrong with that; empty if nothing is."""
    printed: str


def run(case: Case, scratch: Path) -> Outcome:
    """Run a case in a fork, in a folder of its own."""
    folder = scratch / "case"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    case.write(folder)
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads; the fork needs none
        child = os.fork()
    if child == 0:
        _run_here(case, folder, scratch)
    _, ended, usage = os.wait4(child, 0)
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    out, err = ((scratch / name).read_bytes().decode(errors="replace") for name in ("out", "err"))
    status = os.waitstatus_to_exitcode(ended)
    fault = _fault_of_end(status, err, memory) or _fault_of_words(case, status, out, err)
    left = [path.name for path in folder.rglob("*") if is_leftover(path)]
    if status == 2:
        left += [path.name for path in folder.glob(NEW)]
    if left and not fault:
        fault = f"leaves half a file: {left[0]}"
    return Outcome(fault, f"$ cores {case.command}\n{out}{err}")


def _run_here(case: Case, folder: Path, scratch: Path) -> NoReturn:
    """Run the command in the fork, and end."""
    status = 99
    try:
        os.chdir(folder)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(scratch / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
        if (sizes := Path("/proc/self/statm")).exists():
            room = int(sizes.read_text().split()[0]) * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (room, room))
        # Either tells where it hangs, and ends it.
        faulthandler.register(signal.SIGPROF, file=2, chain=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        faulthandler.dump_traceback_later(WAITING * SECONDS, exit=True, file=2)
        status = case.run()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _fault_of_end(status: int, err: str, memory: int) -> str:
    """Tell what is wrong with how a command ended."""
    if memory > MEMORY or "out of memory" in err or "DefaultCPUAllocator" in err:
        return "takes too much memory"
    places = re.findall(r'File ".*?/(cores/[\w/]+\.py)", line (\d+)', err) or [("nowhere", "?")]
    if status == -signal.SIGPROF or "Timeout (" in err:
        return f"hangs in {':'.join(places[0])}"
    if status < 0:
        return f"is killed by signal {-status}"
    if status not in (0, 2) or "Traceback (" in err:
        last = (err.splitlines() or [""])[-1]
        return f"ends with status {status} in {':'.join(places[-1])}: {last[:80]}"
    return ""


def _fault_of_words(case: Case, status: int, out: str, err: str) -> str:
    """Tell what is wrong with what a command said."""
    lines = err.splitlines()
    told = [line for line in lines if line.startswith("cores: ")]
    if (status == 2) != bool(told) or told not in ([], lines[-1:]):
        return f"says {len(told)} lines where it ends with status {status}"
    if warned := re.search(r"\w+Warning: .{,60}", err):
        return f"warns: {warned[0]}"
    if any(len(line) > LONGEST for line in lines):
        return f"says a line that nobody reads: {told[-1:]!s:.80}"
    if _CONTROL.search(out + err):
        return "prints what a terminal obeys"
    if status == 0 and "--json" in case.command:
        try:
            json.loads(out, parse_constant=_refuse)
        except ValueError as error:
            return f"prints no JSON: {error}"
    return ""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is none")
