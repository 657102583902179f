"""Does `cores serve` stand a minute of many clients, some of them hostile?

    python benchmarks/serve_load.py RUN --seconds 60 --clients 20

Starts the server of a trained model of molecules and asks it from many threads: pasted molecules,
files and records, and among them garbage, bombs, bodies that are too large or stop in the middle,
and requests of foreign pages. Prints how often each kind got which status, how long the good ones
took, and the memory of the server over time. Ends with status 1 if anything got a status of 500 or
more, if the server wrote an error, or if its memory still grew after the first third of the time.
"""

import gzip
import json
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from statistics import median, quantiles
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import IO
from urllib.parse import urlencode, urlsplit

import psutil

from inputs import parser

SMILES = (
    *("CCO", "c1ccccc1O", "CC(=O)Nc1ccc(O)cc1", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "[Na+].[Cl-]"),
    *("CC(C)Cc1ccc(cc1)C(C)C(=O)O", "C1CCCCC1", "O=C(O)c1ccccc1OC(C)=O", "c1ccc2ccccc2c1"),
)
OCTETS = {"Content-Type": "application/octet-stream"}
LARGE = b"CCO\n" * 2_500_000
BOMB = gzip.compress(b"\n" * 200_000_000)
MOST_GROWTH = 0.03
"""Of the server's memory from the second third of the time to the last; in the first, it gets as
large as the largest request makes it."""


@dataclass(frozen=True)
class Question:
    """A request."""

    body: bytes | None
    query: dict[str, str]
    path: str = "/api/graphs"
    headers: dict[str, str] = field(default_factory=dict)
    broken: bool = False
    """Whether it stops in the middle."""


def _pasted(draw: random.Random) -> Question:
    lines = "".join(f"{draw.choice(SMILES)} m{at}\n" for at in range(draw.randint(1, 10)))
    return Question(lines.encode(), {"name": "a.smi", "alpha": str(draw.choice((0.05, 0.1, 0.3)))})


def _file(draw: random.Random) -> Question:
    rows = "".join(f"m{at},{draw.choice(SMILES)}\n" for at in range(100))
    return Question(f"id,smiles\n{rows}".encode(), {"name": "new.csv"})


def _records(draw: random.Random) -> Question:
    query = {"name": "a.smi", "format": draw.choice(("csv", "jsonl"))}
    return Question(_pasted(draw).body, query)


def _garbage(draw: random.Random) -> Question:
    name = draw.choice(("a.smi", "a.csv", "a.sdf", "a.parquet", "a.csv.gz", "a.pt", "a", "../x"))
    return Question(draw.randbytes(draw.randint(0, 5_000)), {"name": name})


def _foreign(draw: random.Random) -> Question:
    headers = draw.choice(({"Host": "evil.example"}, {"Origin": "http://evil.example"}))
    return Question(b"CCO\n", {"name": "a.smi"}, headers=headers)


KINDS: dict[str, tuple[int, Callable[[random.Random], Question]]] = {
    "page": (4, lambda draw: Question(None, {}, "/")),
    "pasted molecules": (40, _pasted),
    "file of 100 molecules": (6, _file),
    "records": (12, _records),
    "garbage": (10, _garbage),
    "wrong alpha": (6, lambda draw: Question(b"CCO", {"name": "a.smi", "alpha": "nan"})),
    "too large": (4, lambda draw: Question(LARGE, {"name": "a.smi"})),
    "bomb": (4, lambda draw: Question(BOMB, {"name": "a.csv.gz"})),
    "rings without end": (2, lambda draw: Question(b"C1CC1" * 1_500, {"name": "a.smi"})),
    "foreign page": (6, _foreign),
    "unknown path": (3, lambda draw: Question(None, {}, "/api/none")),
    "broken off": (3, lambda draw: Question(b"CCO\n", {"name": "a.smi"}, broken=True)),
}
"""How often each kind is asked, out of 100, and what it is."""
GOOD = ("page", "pasted molecules", "file of 100 molecules", "records")


def ask(address: tuple[str, int], question: Question) -> int | str:
    """The status of the answer, or what became of the connection."""
    connection = HTTPConnection(*address, timeout=120)
    method = "GET" if question.body is None else "POST"
    path = f"{question.path}?{urlencode(question.query)}"
    try:
        if question.broken:
            connection.putrequest(method, path)
            connection.putheader("Content-Type", OCTETS["Content-Type"])
            connection.putheader("Content-Length", "1000000")
            connection.endheaders(question.body)
            return "closed by us"
        # The server may answer, and close, before it has read all of a body.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, question.body, OCTETS | question.headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


@dataclass
class Measured:
    """What the clients saw."""

    statuses: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    """Of the server, in MiB, twice a second."""

    def client(self, address: tuple[str, int], seed: int, end: float) -> None:
        """One client, which asks until the end."""
        draw = random.Random(seed)
        names, weights = list(KINDS), [weight for weight, _ in KINDS.values()]
        while monotonic() < end:
            (name,) = draw.choices(names, weights)
            begin = monotonic()
            status = ask(address, KINDS[name][1](draw))
            self.statuses[name, str(status)] += 1
            if status == 200 and name in GOOD:
                self.seconds.append(monotonic() - begin)

    @property
    def growth(self) -> float:
        """Of the median from the second third to the last."""
        third = len(self.memory) // 3
        return median(self.memory[2 * third :]) / median(self.memory[third : 2 * third]) - 1

    def tell(self) -> None:
        """Print it."""
        print("| request | statuses |\n|---|---|")
        for name in KINDS:
            found = {s: count for (kind, s), count in self.statuses.items() if kind == name}
            print(f"| {name} | {', '.join(f'{s}: {n}' for s, n in sorted(found.items()))} |")
        p95 = quantiles(self.seconds, n=20)[-1]
        print(f"good answers: median {median(self.seconds):.2f} s, 95 % within {p95:.2f} s")
        size = len(self.memory)
        tenths = [self.memory[at * size // 10] for at in range(10)] + self.memory[-1:]
        print(f"memory, MiB: {', '.join(f'{each:.0f}' for each in tenths)}", end="; ")
        print(f"largest {max(self.memory):.0f}, growth {100 * self.growth:+.1f} %")


def load(run: str, clients: int, seconds: float, errors: IO[str]) -> tuple[Measured, int]:
    """What clients saw of a server, which writes its errors to a file, and its exit status."""
    command = [sys.executable, "-m", "cores", "serve", run, "--port", "0", "--json"]
    server = subprocess.Popen(
        [*command, "--device", "cpu"], stdout=subprocess.PIPE, stderr=errors, text=True
    )
    measured = Measured()
    try:
        assert server.stdout is not None
        url = urlsplit(json.loads(server.stdout.readline())["url"])
        address = (str(url.hostname), int(url.port or 0))
        ask(address, Question(b"CCO\n", {"name": "a.smi"}))  # all is imported
        process, end = psutil.Process(server.pid), monotonic() + seconds
        threads = [
            threading.Thread(target=measured.client, args=(address, seed, end))
            for seed in range(clients)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            measured.memory.append(process.memory_info().rss / 2**20)
            sleep(0.5)
    finally:
        server.send_signal(signal.SIGINT)
    return measured, server.wait(30)


def main() -> int:
    """The command."""
    options = parser(__doc__)
    options.add_argument("run", help="run folder of a model of molecules")
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--clients", type=int, default=20)
    given = options.parse_args()
    with TemporaryFile("w+") as errors:
        measured, status = load(given.run, given.clients, given.seconds, errors)
        errors.seek(0)
        written = errors.read()
    measured.tell()
    print(f"the server ended with status {status} and wrote {len(written)} characters of errors")
    print(written[-2000:], file=sys.stderr, end="")
    faults = [status for _, status in measured.statuses if status.startswith("5")]
    return int(bool(faults or written) or measured.growth > MOST_GROWTH or status != 0)


if __name__ == "__main__":
    sys.exit(main())
