"""Does bad input end in a right result or in one clear line? Damage valid files, and see.

A process that has imported everything forks for each case; the fork runs a command of the program
on the damaged files (``make fuzz``). A case fails if the command ends in a traceback or a warning,
is not over in time, takes too much memory, says more than one line when it refuses, prints what a
terminal obeys, or leaves half a file. Cases follow from the seed: the same ones come again.
"""

import argparse
import faulthandler
import gc
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch

from cores.files import is_leftover
from fuzz_targets import Built, Case, Damaged, small_world, targets

SECONDS = 20
"""Of the processor that a case may take; other programs may take much more of the clock's."""
WAITING = 10
"""How many times as long it may take by the clock."""
MEMORY = 2 * 2**30
"""Bytes that it may take, with all that is imported."""
LONGEST = 1_100
"""Characters of a line that a person still reads."""
NEW = "new.*"
"""What a command may write only if it succeeds."""
SHOWN = 3
"""Cases that are kept of those that fail in the same way."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Outcome:
    """How a case ended."""

    refused: bool
    fault: str
    """What is wrong with that; empty if nothing is."""
    memory: int
    """Most bytes that were in use."""
    printed: str


@dataclass
class Tally:
    """What came of the cases of a target."""

    seconds: float = 0.0
    cases: int = 0
    refused: int = 0
    failed: int = 0
    memory: int = 0

    def add(self, outcome: Outcome, seconds: float) -> None:
        """Count a case."""
        self.seconds += seconds
        self.cases += 1
        self.refused += outcome.refused
        self.failed += bool(outcome.fault)
        self.memory = max(self.memory, outcome.memory)

    def row(self, name: str) -> str:
        """A line of the table at the end."""
        accepted = self.cases - self.refused - self.failed
        counts = f"{self.cases} | {accepted} | {self.refused} | {self.failed}"
        return f"| {name} | {counts} | {self.memory / 2**20:.0f} | {self.seconds:.0f} |"


HEAD = (
    "| target | cases | accepted | refused | failed | memory, MiB | seconds |\n" + "|---" * 7 + "|"
)


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
    fault = _fault_of_end(status, out, err, memory) or _fault_of_words(case, status, out, err)
    left = [path.name for path in folder.rglob("*") if is_leftover(path)]
    if not fault and (left or (status == 2 and any(folder.glob(NEW)))):
        fault = f"leaves half a file: {[*left, *map(str, folder.glob(NEW))][0]}"
    return Outcome(status == 2 and not fault, fault, memory, f"{out}{err}")


def _run_here(case: Case, folder: Path, scratch: Path) -> NoReturn:
    """In the fork: do the command, and end."""
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


def _fault_of_end(status: int, out: str, err: str, memory: int) -> str:
    """What is wrong with how a command ended."""
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
    """What is wrong with what a command said."""
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


class Fuzzer:
    """Cases of some targets until the time is up, each target for as long as the others."""

    def __init__(self, sources: dict[str, Damaged | Built], seed: int, scratch: Path) -> None:
        self.sources = sources
        self.seed = seed
        self.scratch = scratch
        self.tallies = {name: Tally() for name in sources}
        self.faults: dict[str, int] = {}
        """How often each was met."""

    def case(self, target: str, number: int) -> Case:
        """A case; always the same."""
        return self.sources[target].case(f"{self.seed}-{target}", number)

    def step(self, keep: Path | None = None) -> None:
        """Try the next case; one that fails is told, and kept."""
        target = min(self.tallies, key=lambda name: self.tallies[name].seconds)
        number, begin = self.tallies[target].cases, time.perf_counter()
        case = self.case(target, number)
        outcome = run(case, self.scratch)
        self.tallies[target].add(outcome, time.perf_counter() - begin)
        if not outcome.fault:
            return
        met = self.faults[outcome.fault] = self.faults.get(outcome.fault, 0) + 1
        if met == 1:
            print(f"{target}:{number} ({case.command}) {outcome.fault}", flush=True)
        if met <= SHOWN and keep is not None:
            kept = keep / f"{target}-{self.seed}-{number}"
            case.write(kept)
            (kept / "printed.txt").write_text(f"$ cores {case.command}\n{outcome.printed}")

    def __str__(self) -> str:
        cases = sum(tally.cases for tally in self.tallies.values())
        return f"{cases} cases, {len(self.faults)} faults"

    def report(self) -> Iterator[str]:
        """A table of the targets, and the faults."""
        yield HEAD
        yield from (tally.row(name) for name, tally in self.tallies.items())
        for fault, met in sorted(self.faults.items()):
            yield f"{met} times: {fault}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz for a while; returns 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="only this one; repeatable")
    parser.add_argument("--keep", type=Path, help="folder for the files of cases that fail")
    parser.add_argument("--replay", metavar="TARGET:NUMBER", help="show one case of the seed again")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    data = os.environ.get("CORES_DATA")
    with tempfile.TemporaryDirectory() as folder, small_world(scratch := Path(folder).resolve()):
        sources = targets(Path(data) if data else None)
        wanted = [given.replay.partition(":")[0]] if given.replay else given.target or list(sources)
        if unknown := sorted({*wanted} - {*sources}):
            parser.error(f"no target is named {unknown[0]}; known: {', '.join(sources)}")
        fuzzer = Fuzzer({name: sources[name] for name in wanted}, given.seed, scratch)
        gc.freeze()  # pages that a fork does not touch are not copied
        if given.replay:
            case = fuzzer.case(wanted[0], int(given.replay.partition(":")[2]))
            outcome = run(case, scratch)
            print(f"$ cores {case.command}\n{outcome.printed}{outcome.fault or 'no fault'}")
            return int(bool(outcome.fault))
        begin = told = time.monotonic()
        while (now := time.monotonic()) < begin + given.seconds:
            fuzzer.step(given.keep)
            if now > told + 30:
                told = now
                print(f"{now - begin:.0f} s: {fuzzer}", flush=True)
        print("\n".join(fuzzer.report()))
        return int(bool(fuzzer.faults))


if __name__ == "__main__":
    sys.exit(main())
