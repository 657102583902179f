"""Do the tests notice faults? Put small ones into the method, one at a time (``make mutants``).

Nothing is written into the tree: a process that has imported torch forks, the fork reads one module
with a fault in it and runs the tests of that module. A fault that no test notices survives. Every
survivor is a missing test, or is listed in docs/mutants.md with the reason why it does no harm.
"""

import argparse
import hashlib
import importlib
import importlib.util
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path

from mutations import Mutation, mutated, mutations

ROOT = Path(__file__).resolve().parents[1]
STATE, HARMLESS = ROOT / "mutants.jsonl", ROOT / "docs" / "mutants.md"
GRAPHS = ("tests/graphs", "tests/models/test_policy.py", "tests/models/test_network.py")
SUBGRAPHS = ("tests/graphs/test_subgraphs.py", "tests/evaluation/test_explanations.py")
STACKED = ("tests/training/test_stacked.py", "tests/training/test_updates.py")
ALGORITHM = (
    *("tests/training/test_rewards.py", "tests/training/test_bilevel.py"),
    "tests/training/test_balance.py",
)
ROLES = "tests/runs/test_roles.py"
_INTERRUPTED = "tests/runs/test_cores_run.py::test_an_interrupted_run_goes_on_to_the_same_bytes"
RESUMED = (f"{_INTERRUPTED}[default]", f"{_INTERRUPTED}[paper]")
TESTS: dict[str, tuple[str, ...]] = {
    "conformal": ("tests/test_conformal.py", "tests/evaluation/test_sets.py"),
    "reward": ("tests/test_reward.py", "tests/training/test_rewards.py"),
    "graphs/ahead": ("tests/graphs/test_ahead.py",),
    "graphs/batches": ("tests/graphs/test_batches.py", *GRAPHS),
    "graphs/masks": ("tests/graphs/test_masks.py", *GRAPHS),
    "graphs/segments": ("tests/graphs/test_segments.py", *GRAPHS),
    "graphs/stacked": ("tests/graphs/test_stacked.py", *STACKED),
    "graphs/store": ("tests/graphs/test_store.py", *GRAPHS),
    "graphs/subgraphs": (*SUBGRAPHS, *GRAPHS, *ALGORITHM),
    "models/stack": ("tests/models/test_stack.py", "tests/training/test_stacked.py"),
    "data/splits": ("tests/data/test_splits.py",),
    "ppo": ("tests/test_ppo.py", *ALGORITHM),
    "training/balance": ("tests/training/test_balance.py", ROLES),
    "training/bilevel": (*ALGORITHM, ROLES, *RESUMED),
    "training/journal": ("tests/training/test_journal.py", *RESUMED),
    "training/judge": ("tests/training/test_judge.py", ROLES),
    "training/learner": (*ALGORITHM, ROLES, *RESUMED),
    "training/effects": ("tests/training/test_effects.py",),
    "training/optimizer": ("tests/training/test_optimizer.py",),
    "training/dial": ("tests/training/test_dial.py",),
    "training/phases": ("tests/training/test_phases.py",),
    "training/recorded": (*STACKED, "tests/training/test_effects.py"),
    "training/rollouts": ("tests/training/test_rollouts.py", *ALGORITHM, ROLES),
    "training/schedule": ("tests/training/test_schedule.py", *RESUMED),
    "training/state": ("tests/training/test_state.py", "tests/training/test_journal.py"),
    "training/stopping": ("tests/training/test_stopping.py", *RESUMED),
    "training/stacked": ("tests/training/test_stacked.py",),
    "training/step": ("tests/training/test_supervised.py",),
    "training/updates": ("tests/training/test_updates.py",),
    "training/supervised": (
        *("tests/training/test_supervised.py", "tests/training/test_balance.py", ROLES),
    ),
}
"""The modules that faults are put into, and the tests that should notice; doctests are always run.

The quickest come first: a fault that one of them notices costs no more.
"""
PRELOADED = (
    *(
        "torch",
        "torch_geometric.data",
        "torch_geometric.nn",
        "torchmetrics",
        "numpy",
        "scipy.stats",
    ),
    *("sklearn.metrics", "networkx", "safetensors.torch", "hypothesis", "beartype", "jaxtyping"),
)
"""Imported once, before forking; those that are not there are left to the tests that need them."""
BUSY = 20
"""On a machine with other work to do, a trial may take so many times the seconds it computes."""
ENOUGH = 0.9
"""Share of the faults that the tests must notice."""


@dataclass(frozen=True)
class Module:
    """A file of the package, and its faults."""

    name: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return ROOT / "src" / "cores" / f"{self.name}.py"

    @property
    def source(self) -> str:
        """Its text."""
        return self.path.read_text(encoding="utf-8")

    @property
    def digest(self) -> str:
        """Changes with its text."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:12]

    @property
    def faults(self) -> list[Mutation]:
        """All that can be put into it."""
        return mutations(self.source)


@dataclass(frozen=True)
class Trial:
    """A run of a module's tests, with one of its faults or, to time it, with none."""

    module: Module
    number: int | None = None

    @property
    def key(self) -> tuple[str, str, int | None]:
        """Names it in the state; another text of the module is another trial."""
        return self.module.name, self.module.digest, self.number

    def start(self, output: Path, most: float) -> int:
        """Fork, with so many seconds to compute; returns the number of the process."""
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()  # what the tests start ends with them
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(most), math.ceil(most)))
            log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            code = self._run()
            sys.stdout.flush()
            os._exit(code)
        finally:
            traceback.print_exc()
            os._exit(99)

    def _run(self) -> int:
        import hypothesis
        import pytest

        if self.number is not None:
            _read_instead(self.module.path, mutated(self.module.source, self.number).encode())
        # Seeded, and patient: whether a fault is noticed must not be a matter of luck.
        hypothesis.settings.register_profile(
            "mutants",
            database=None,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        hypothesis.settings.load_profile("mutants")
        options = (
            *("-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not data"),
            *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what was preloaded
        )
        first, *others = TESTS[self.module.name]
        # Most faults are noticed before the later tests are even read. The doctests need company:
        # alone, pytest reads the file itself, without the fault.
        for tests in ([str(self.module.path), first], *([each] for each in others)):
            if code := pytest.main([*options, *tests]):
                return int(code)
        return 0


def _read_instead(path: Path, source: bytes) -> None:
    """Let Python read another text in place of a file, compiled anew."""
    read = SourceFileLoader.get_data

    def get_data(loader: SourceFileLoader, asked: str | bytes) -> bytes:
        if Path(str(asked)) == path:
            return source
        if str(asked).endswith(".pyc") and Path(str(asked)).name.startswith(f"{path.stem}."):
            raise OSError("compiled from the file itself")
        return read(loader, str(asked))

    sys.dont_write_bytecode = True
    SourceFileLoader.get_data = get_data  # type: ignore[assignment,method-assign]


@dataclass
class State:
    """What is known: a file with a line per trial, so that a later call goes on."""

    path: Path
    outcomes: dict[tuple[str, str, int | None], str] = field(default_factory=dict)
    seconds: dict[tuple[str, str, int | None], float] = field(default_factory=dict)

    def read(self) -> None:
        """Take in the file; the last word on a trial counts."""
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                known = json.loads(line)
                key = known["module"], known["digest"], known["number"]
                self.outcomes[key], self.seconds[key] = known["outcome"], known["seconds"]

    def record(self, trial: Trial, outcome: str, seconds: float) -> None:
        """Note how a trial ended."""
        name, digest, number = trial.key
        self.outcomes[trial.key], self.seconds[trial.key] = outcome, seconds
        known = {"module": name, "digest": digest, "number": number}
        line = json.dumps({**known, "outcome": outcome, "seconds": round(seconds, 1)})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


@dataclass
class Workers:
    """Processes that run trials side by side until the time is up."""

    number: int
    deadline: float
    state: State
    logs: Path

    def run(self, trials: Sequence[Trial]) -> None:
        """Run trials; those that are not over at the deadline are left for the next call."""
        waiting = list(reversed(trials))
        running: dict[int, tuple[Trial, float]] = {}
        while (waiting and time.monotonic() < self.deadline) or running:
            while waiting and len(running) < self.number and time.monotonic() < self.deadline:
                trial = waiting.pop()
                pid = trial.start(self.log(trial), self._most(trial))
                running[pid] = trial, time.monotonic()
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid:
                trial, _ = running.pop(pid)
                outcome = "survived" if status == 0 else "killed"
                self.state.record(trial, outcome, used.ru_utime + used.ru_stime)
                continue
            for pid, (trial, begun) in list(running.items()):
                hangs = time.monotonic() - begun > BUSY * self._most(trial)
                if time.monotonic() > self.deadline or hangs:
                    os.killpg(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    del running[pid]
                    if time.monotonic() <= self.deadline:
                        self.state.record(trial, "timeout", time.monotonic() - begun)
            time.sleep(0.05)

    def _most(self, trial: Trial) -> float:
        """Seconds of computing: a fault that makes the tests much slower is noticed by that."""
        usual = self.state.seconds.get(Trial(trial.module).key)
        return 600.0 if usual is None else 20 + 4 * usual

    def log(self, trial: Trial) -> Path:
        """Where the tests' output goes: nobody reads it but where they fail without a fault."""
        if trial.number is not None:
            return Path(os.devnull)
        return self.logs / f"{trial.module.name.replace('/', '-')}.log"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults that were not tried yet, and tell which survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(TESTS), metavar="module")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="then stop")
    parser.add_argument("--state", type=Path, default=STATE, help="what is known already")
    parser.add_argument("--again", action="store_true", help="try the survivors again, too")
    parser.add_argument("--table", action="store_true", help="only tell what is known")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.modules) - set(TESTS)):
        parser.error(f"no tests are known for {unknown[0]}; known: {', '.join(TESTS)}")
    modules = [Module(name) for name in given.modules]
    state = State(given.state.absolute())
    state.read()
    if not given.table:
        with tempfile.TemporaryDirectory() as logs:
            deadline = time.monotonic() + given.seconds
            try_all(modules, Workers(given.workers, deadline, state, Path(logs)), given.again)
    for line in report(modules, state):
        print(line)
    return int(not noticed_enough(modules, state))


def try_all(modules: Sequence[Module], workers: Workers, again: bool) -> None:
    """Run the tests of every module without a fault, which times them, then with each of them."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.chdir(ROOT)
    for name in PRELOADED:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    warnings.simplefilter("ignore", DeprecationWarning)  # of forking: no thread was started
    known = workers.state.outcomes
    open_trials = [
        trial
        for module in modules
        for trial in (Trial(module, fault.number) for fault in module.faults)
        if trial.key not in known or (again and known[trial.key] == "survived")
    ]
    sound = [Trial(module) for module in modules if any(t.module == module for t in open_trials)]
    workers.run([trial for trial in sound if known.get(trial.key) != "survived"])
    for trial in sound:
        if known.get(trial.key) == "killed":
            print(f"the tests of {trial.module.name} fail without a fault:")
            print(workers.log(trial).read_text(encoding="utf-8")[-3000:])
    ready = {trial.module for trial in sound if known.get(trial.key) == "survived"}
    workers.run([trial for trial in open_trials if trial.module in ready])


def unexplained(modules: Sequence[Module], state: State) -> Iterator[tuple[Module, Mutation]]:
    """Survivors that docs/mutants.md does not list."""
    listed = HARMLESS.read_text(encoding="utf-8").splitlines()
    for module in modules:
        for fault in module.faults:
            survived = state.outcomes.get(Trial(module, fault.number).key) == "survived"
            if survived and not any(line.startswith(row(module, fault)) for line in listed):
                yield module, fault


def row(module: Module, fault: Mutation) -> str:
    """How docs/mutants.md names a fault; the reason follows."""
    text = str(fault).replace("|", r"\|")
    return f"| {module.name} | {fault.function} | {text} |"


def counts(module: Module, state: State) -> tuple[int, int, int]:
    """How many faults there are, how many were tried, and how many of those were noticed."""
    faults = module.faults
    outcomes = [state.outcomes.get(Trial(module, fault.number).key, "") for fault in faults]
    noticed = [outcome in ("killed", "timeout") for outcome in outcomes]
    return len(faults), sum(map(bool, outcomes)), sum(noticed)


def noticed_enough(modules: Sequence[Module], state: State) -> bool:
    """Whether all faults were tried, most were noticed, and the rest do no harm."""
    faults, tried, noticed = map(sum, zip(*(counts(each, state) for each in modules), strict=True))
    complete = tried == faults and noticed >= ENOUGH * faults
    return complete and next(unexplained(modules, state), None) is None


def report(modules: Sequence[Module], state: State) -> Iterator[str]:
    """A line per module, then the survivors that nobody has explained."""
    yield "| module | faults | tried | noticed | survived | share noticed |"
    yield "|---|---|---|---|---|---|"
    found = {module.name: counts(module, state) for module in modules}
    for name, known in found.items():
        yield _line(name, *known)
    faults, tried, noticed = map(sum, zip(*found.values(), strict=True))
    yield _line("all", faults, tried, noticed)
    open_ones = list(unexplained(modules, state))
    if open_ones:
        yield "\nNo test notices these, and docs/mutants.md does not say why that does no harm:\n"
    for module, fault in open_ones:
        yield f"{row(module, fault)} line {fault.line} |"


def _line(name: str, faults: int, tried: int, noticed: int) -> str:
    share = f"{100 * noticed / tried:.1f} %" if tried else "–"
    return f"| {name} | {faults} | {tried} | {noticed} | {tried - noticed} | {share} |"


if __name__ == "__main__":
    sys.exit(main())
