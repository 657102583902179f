"""Explains the graphs of a request, or a run's test graphs, by its model."""

import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch

from cores.data.inputs.sources import KINDS, read_rows, suffix_of
from cores.data.raw import Parsed
from cores.errors import UserError
from cores.explain.atoms import AtomMap, atom_map
from cores.explain.explained import ExplainedGraph, explained_graphs
from cores.explain.parts_view import PartWords
from cores.explain.run import held_out_graphs
from cores.files import limits
from cores.runs.inputs import PredictOptions, check_kind
from cores.runs.opened import PredictedGraphs, Run
from cores.runs.records import Record
from cores.serve.limits import LINE, MEMORY, MOST_GRAPHS, Deadline, check_bytes, check_graph

AT_ONCE, SMALL = 20, 1_000
"""Graphs that are predicted at once, and the nodes of one that is large enough to be alone: some
models need memory for every pair of nodes."""
MOST_TEST_GRAPHS = 1_000
"""Test graphs that are kept in memory."""
GRAPHS = tuple(
    ending
    for ending, kind in KINDS.items()
    if kind.holds == "graphs" and ending not in (".pt", ".pth")
)
"""Endings of files of graphs; those of PyG's are pickles, and not taken from a page."""


@dataclass(frozen=True)
class Asked:
    """What a request asks of the model; None: as the server was started."""

    alpha: float | None = None
    sufficiency: float | None = None
    parts: str | None = None


@dataclass
class Found:
    """Explained graphs and unusable rows of an input."""

    predictor: Run
    """The model with the sets and parts that were asked for."""
    graphs: list[ExplainedGraph] = field(default_factory=list)
    failed: dict[int, Record] = field(default_factory=dict)
    """Records of rows that could not be used, by position."""
    first: int = 0
    """Position of the first row."""
    total: int | None = None
    """Rows of the input; None where there are more than were read."""

    @property
    def records(self) -> list[Record]:
        """As `cores predict` gives them, in order."""
        found = self.failed | {graph.position: graph.record for graph in self.graphs}
        return [found[position] for position in sorted(found)]

    def add(self, chunk: PredictedGraphs, atoms: AtomMap | None) -> None:
        """Add the graphs of a chunk."""
        self.graphs += explained_graphs(chunk, self.predictor.trained, atoms)
        self.failed |= self.predictor.failed(chunk.rejected)


class Explorer:
    """The model of a run, asked by one request at a time."""

    def __init__(
        self, run: Path, options: PredictOptions, device: str, data_root: Path | None = None
    ) -> None:
        self.run = run
        self.predictor = Run.open(run, options, device=device)
        self._data_root = data_root
        self._atoms = atom_map(self.predictor.trained.config.dataset)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Endings of the files that it takes."""
        if self.predictor.reads_molecules:
            return tuple(ending for ending, kind in KINDS.items() if kind.holds == "molecules")
        return GRAPHS

    @property
    def draws_molecules(self) -> bool:
        """True where its graphs are drawn as molecules."""
        return self.predictor.reads_molecules or self._atoms is not None

    def of_file(self, path: Path, deadline: Deadline, asked: Asked) -> Found:
        """Explain the first graphs of a file."""
        found = Found(self._predictor(asked))
        with limits.MEMORY.by_default(MEMORY), limits.LINE.by_default(LINE):
            parts = list(self._parsed(_unpacked(path), deadline))
            if not parts:
                raise UserError(f"{path.name} holds no graphs")
            if len(parts) <= MOST_GRAPHS:
                found.total = len(parts)
            for chunk in _together(parts[:MOST_GRAPHS]):
                deadline.check()
                predicted = found.predictor.predicted(chunk)
                predicted.rejected.extend(chunk.rejected)
                found.add(predicted, self._atoms)
        if not found.graphs:
            first = found.records[0]
            raise UserError(f"no row of {path.name} can be used: {first['id']}: {first['error']}")
        return found

    def of_test_part(self, first: int, count: int, asked: Asked) -> Found:
        """Explain some of the run's test graphs."""
        found = Found(self._predictor(asked), first=first, total=0)
        wanted = range(first, first + count)
        for chunk in self._test_part:
            chosen = [at for at, position in enumerate(chunk.positions) if position in wanted]
            found.total = (found.total or 0) + len(chunk.positions)
            if chosen:
                found.add(_again(found.predictor, chunk, chosen), self._atoms)
        if not found.graphs:
            raise UserError(f"there is no test graph {first}; there are {found.total}")
        return found

    @property
    def words(self) -> PartWords:
        """Words for the parts of its model."""
        return PartWords.of(self.predictor.trained, molecules=self.draws_molecules)

    def _predictor(self, asked: Asked) -> Run:
        shown = self.predictor.trained.showing(asked.sufficiency, asked.parts)
        return replace(self.predictor, trained=shown.with_sets(asked.alpha, None, None))

    @cached_property
    def _test_part(self) -> list[PredictedGraphs]:
        """Read once: the whole dataset must be."""
        chunks, graphs = [], 0
        for chunk in held_out_graphs(self.predictor, self._data_root):
            chunks.append(chunk)
            graphs += len(chunk.positions)
            if graphs >= MOST_TEST_GRAPHS:
                break
        return chunks

    def _parsed(self, path: Path, deadline: Deadline) -> Iterator[Parsed]:
        """Read rows one by one, up to one more than are shown: a row may take seconds."""
        schema = self.predictor.trained.schema
        for number, rows in enumerate(read_rows(path, self.predictor.columns, 1)):
            deadline.check()
            check_kind(rows, schema)
            parsed = rows.parse(schema.encoding.layout)
            if len(parsed.graphs):
                check_graph(_nodes(parsed), parsed.graphs.edge_index.shape[1] // 2, parsed.ids[0])
            yield parsed
            if number == MOST_GRAPHS:
                return


def safe_name(said: str, kinds: Collection[str]) -> str:
    """Make a name of a user's file safe: it keeps its ending, and is no path.

    >>> safe_name("../a b.CSV.gz", [".csv"]), safe_name("分子.csv", [".csv"])
    ('a_b.CSV.gz', 'graphs.csv')
    """
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", said.replace("\\", "/").rpartition("/")[2])
    kind = suffix_of(Path(name))
    if kind not in kinds or (name.lower().endswith(".gz") and not KINDS[kind].streamed):
        raise UserError(
            f"the file's name must end in {', '.join(kinds)}, got {name[-40:] or 'none'}"
        )
    bare = name[-80:].lstrip("._-")
    return bare if suffix_of(Path(bare)) == kind else f"graphs.{bare}"


def _nodes(parsed: Parsed) -> int:
    return int(parsed.graphs.node_ptr[-1])


def _together(parts: Sequence[Parsed]) -> Iterator[Parsed]:
    """Join rows to chunks that are predicted at once."""
    size = AT_ONCE if max(map(_nodes, parts)) <= SMALL else 1
    for first in range(0, len(parts), size):
        yield Parsed.joined(parts[first : first + size])


def _again(predictor: Run, chunk: PredictedGraphs, chosen: Sequence[int]) -> PredictedGraphs:
    """Predict some graphs again, with other sets or parts."""
    positions = [chunk.positions[at] for at in chosen]
    return predictor.predicted_graphs(
        chunk.graphs.subset(torch.tensor(chosen, dtype=torch.int64)),
        [chunk.records[at]["id"] for at in chosen],
        positions,
        [position + 1 for position in positions],
        [chunk.labels[at] for at in chosen],
        [chunk.molecules[at] for at in chosen] if chunk.molecules else (),
    )


def _unpacked(path: Path) -> Path:
    """Unpack gzip within the limit: a small file may unpack to a very large one."""
    if path.suffix.lower() != ".gz":
        return path
    plain, count = path.with_suffix(""), 0
    try:
        with gzip.open(path) as source, plain.open("wb") as file:
            while block := source.read(2**18):
                count += len(block)
                check_bytes(count, "the file unpacks to")
                file.write(block)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path.name} is not a whole gzip file ({error})") from None
    return plain
