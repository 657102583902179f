"""One record per input graph: what is predicted and kept; as JSON lines, CSV or Parquet."""

import csv
import gzip
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cores.config.spec import TaskName
from cores.data.inputs.molecules import needs_pyarrow
from cores.data.molecules import input_indices, kept_smiles
from cores.errors import UserError
from cores.evaluation.predictions import Predictions
from cores.files.escape import json_text
from cores.graphs.store import GraphStore
from cores.tasks import TASKS

Record = dict[str, Any]
PART_FIELDS = ("part_probability", "minimal", "weak", "questions", "committee_std")
"""What a committee says of the part that is shown."""
FIELDS = (
    *("id", "prediction", "probability", "probabilities", "prediction_set", "p_values"),
    *("lower", "upper"),
    *("kept_nodes", "kept_edges", "node_ratio", "edge_ratio", "pieces"),
    *PART_FIELDS,
    *("kept_smiles", "error"),
)
"""Fields of records, in this order."""
DIGITS = 6
"""Decimals of ratios."""


def record_fields(
    molecules: bool, committee: bool = False, task: TaskName = "classification"
) -> tuple[str, ...]:
    """Fields of the records of molecules, or of other graphs, with a committee or without."""
    left_out = {"kept_smiles": not molecules, **dict.fromkeys(PART_FIELDS, not committee)}
    left_out |= dict.fromkeys(TASKS[task].unset_fields, True)
    return tuple(field for field in FIELDS if not left_out.get(field))


def failed_record(name: str, error: str, fields: Sequence[str]) -> Record:
    """The record of a row that could not be used."""
    return dict.fromkeys(fields) | {"id": name, "error": error}


def prediction_records(
    graphs: GraphStore,
    predictions: Predictions,
    ids: Sequence[str],
    told: Sequence[Record],
    *,
    parts: bool = True,
) -> list[Record]:
    """The records of a store's graphs.

    Args:
        graphs: The graphs, on the CPU like everything else.
        predictions: What the model predicts for them.
        ids: What the input calls them.
        told: What the task tells of the predictions.
        parts: Whether kept nodes and edges are listed, which takes longer than all else.
    """
    kept = _kept_records(graphs, predictions, parts)
    return [
        {"id": name, **predicted, **rest}
        for name, predicted, rest in zip(ids, told, kept, strict=True)
    ]


def _kept_records(graphs: GraphStore, predictions: Predictions, parts: bool) -> list[Record]:
    """Describe the kept parts; their nodes and edges where these are asked for."""
    nothing = [None] * len(graphs)
    columns: dict[str, Sequence[Any]] = {
        "kept_nodes": kept_nodes(graphs, predictions) if parts else nothing,
        "kept_edges": kept_edges(graphs, predictions) if parts else nothing,
        "node_ratio": np.round(predictions.node_ratio.double().numpy(), DIGITS).tolist(),
        "edge_ratio": np.round(predictions.edge_ratio.double().numpy(), DIGITS).tolist(),
        "pieces": nothing if predictions.pieces is None else predictions.pieces.tolist(),
    }
    if (part := predictions.part) is not None:
        columns |= {
            "part_probability": np.round(part.probability.double().numpy(), DIGITS).tolist(),
            "minimal": part.minimal.tolist(),
            "weak": part.weak.tolist(),
            "questions": part.questions.tolist(),
            "committee_std": np.round(part.std.double().numpy(), DIGITS).tolist(),
        }
    return [
        dict(zip(columns, row, strict=True)) | {"error": None}
        for row in zip(*columns.values(), strict=True)
    ]


def kept_nodes(graphs: GraphStore, predictions: Predictions) -> list[list[int]]:
    """Numbers of every graph's kept nodes; of a neighbourhood, those in the larger graph."""
    ptr = graphs.node_ptr.numpy()
    kept = np.flatnonzero(~predictions.removed_nodes.numpy())
    owner = np.searchsorted(ptr, kept, side="right") - 1
    if graphs.node_id is None:
        return _split(kept - ptr[owner], owner, len(graphs))
    numbers = graphs.node_id.numpy()[kept]
    return _split(numbers[np.lexsort((numbers, owner))], owner, len(graphs))


def kept_edges(graphs: GraphStore, predictions: Predictions) -> list[list[list[int]]]:
    """Every graph's kept edges by their ends, each undirected edge once, the smaller end first."""
    kept = np.flatnonzero(~predictions.removed_edges.numpy())
    owner = np.searchsorted(graphs.edge_ptr.numpy(), kept, side="right") - 1
    ends = graphs.edge_index.numpy()[:, kept]
    if graphs.node_id is not None:
        ends = graphs.node_id.numpy()[ends + graphs.node_ptr.numpy()[owner]]
    ends = np.sort(ends, axis=0)
    width = int(ends.max(initial=0)) + 1
    names = np.unique((owner * width + ends[0]) * width + ends[1])  # sorted by graph and ends
    pairs = np.stack([names // width % width, names % width], axis=1)
    return _split(pairs, names // width**2, len(graphs))


def _split(values: NDArray[Any], owner: NDArray[np.int64], graphs: int) -> list[Any]:
    """Values by their owner, which never falls."""
    bounds = np.searchsorted(owner, np.arange(1, graphs))
    return [part.tolist() for part in np.split(values, bounds)]


def add_molecules(
    records: Sequence[Record], molecules: Sequence[Any], graphs: GraphStore, predicted: Predictions
) -> None:
    """Add the kept parts as SMILES, and count atoms as the input does.

    An atom none of whose bonds is kept is left out of the SMILES unless there is nothing else.
    """
    removed = predicted.removed_edges.numpy()
    for index, (record, molecule) in enumerate(zip(records, molecules, strict=True)):
        first, last = int(graphs.edge_ptr[index]), int(graphs.edge_ptr[index + 1])
        bonds = np.flatnonzero(~removed[first:last:2]).tolist()  # both directions of each
        atoms = record["kept_nodes"]
        in_bonds = {end for edge in record["kept_edges"] for end in edge}
        if record["edge_ratio"] < 1 and record["node_ratio"] == 1 and in_bonds:
            atoms = sorted(in_bonds)  # edges were removed
        record["kept_smiles"] = kept_smiles(molecule, atoms, bonds)
        if (places := input_indices(molecule)) is not None:
            record["kept_nodes"] = [places[atom] for atom in record["kept_nodes"]]
            ends = ([places[a], places[b]] for a, b in record["kept_edges"])
            record["kept_edges"] = [sorted(edge) for edge in ends]


@dataclass(frozen=True)
class RecordFormat:
    """The format in which records are written."""

    kind: Literal["jsonl", "csv", "parquet"]
    packed: bool
    """True where it is compressed by gzip."""
    fields: tuple[str, ...]
    labels: tuple[Any, ...]
    """The labels of the model, as they were given for training; none where it predicts numbers."""
    names: tuple[str, ...] = ()
    """Names of the classes or labels."""
    task: TaskName = "classification"

    @classmethod
    def of(
        cls,
        path: Path,
        fields: tuple[str, ...],
        labels: tuple[Any, ...],
        names: tuple[str, ...] = (),
        task: TaskName = "classification",
    ) -> "RecordFormat":
        """The format that a file's name asks for, of records with these fields."""
        name = path.name.lower()
        kind = Path(name.removesuffix(".gz")).suffix.removeprefix(".")
        packed = name.endswith(".gz")
        if kind == "ndjson":
            kind = "jsonl"
        if kind not in ("jsonl", "csv", "parquet") or (kind == "parquet" and packed):
            raise UserError(
                f"`out` must end in .csv, .jsonl or .parquet (.gz may follow the first two), "
                f"got {path.name}"
            )
        if kind == "parquet":
            needs_pyarrow()
        return cls(kind, packed, fields, labels, names, task)  # type: ignore[arg-type]

    def encoded(self, records: Sequence[Record]) -> bytes:
        """Records as a piece of a file; pieces can be joined."""
        if self.kind == "parquet":
            return self._parquet(records)
        if self.kind == "jsonl":
            lines = [f"{json_line(record, self.fields)}\n" for record in records]
        else:
            lines = [_csv_line(record, self.fields) for record in records]
        content = "".join(lines).encode()
        return gzip.compress(content, compresslevel=6, mtime=0) if self.packed else content

    def whole(self, records: Sequence[Record]) -> bytes:
        """Records as a whole file."""
        return self._header() + self.encoded(records)

    def join(self, pieces: Sequence[Path], file: IO[bytes]) -> None:
        """Write a whole file from its pieces."""
        if self.kind == "parquet":
            self._join_parquet(pieces, file)
            return
        file.write(self._header())
        for piece in pieces:
            with piece.open("rb") as source:
                shutil.copyfileobj(source, file)

    def _header(self) -> bytes:
        """Bytes before the first piece."""
        if self.kind != "csv":
            return b""
        header = f"{','.join(self.fields)}\n".encode()
        return gzip.compress(header, mtime=0) if self.packed else header

    def _schema(self) -> Any:
        import pyarrow as pa

        label, in_set, per_label = TASKS[self.task].columns(self.labels, self.names)
        kinds = {
            "id": pa.string(),
            "prediction": label,
            "probability": pa.float64(),
            "probabilities": per_label,
            "prediction_set": in_set,
            "p_values": per_label,
            "lower": pa.float64(),
            "upper": pa.float64(),
            "kept_nodes": pa.list_(pa.int64()),
            "kept_edges": pa.list_(pa.list_(pa.int64())),
            "node_ratio": pa.float64(),
            "edge_ratio": pa.float64(),
            "pieces": pa.int64(),
            "part_probability": pa.float64(),
            "minimal": pa.bool_(),
            "weak": pa.bool_(),
            "questions": pa.int64(),
            "committee_std": pa.float64(),
            "kept_smiles": pa.string(),
            "error": pa.string(),
        }
        return pa.schema([(field, kinds[field]) for field in self.fields])

    def _parquet(self, records: Sequence[Record]) -> bytes:
        import pyarrow as pa

        parquet, buffer = needs_pyarrow(), io.BytesIO()
        parquet.write_table(pa.Table.from_pylist(list(records), schema=self._schema()), buffer)
        return buffer.getvalue()

    def _join_parquet(self, pieces: Sequence[Path], file: IO[bytes]) -> None:
        import pyarrow as pa

        parquet = needs_pyarrow()
        with parquet.ParquetWriter(file, self._schema()) as writer:
            for piece in pieces:
                try:
                    writer.write_table(parquet.read_table(piece))
                except (pa.ArrowException, ValueError):
                    said = "delete it, and the same command makes it anew"
                    raise UserError(f"{piece} is damaged; {said}") from None


def _csv_line(record: Record, fields: Sequence[str]) -> str:
    r"""A record as one row of a table.

    >>> _csv_line({"id": "a\rb", "lower": 0.5}, ["id", "lower"])
    '"a\rb",0.5\n'
    """
    # The csv module quotes what its own line end holds: with "\n", a bare "\r" would stay as it is
    # and end the row.
    row = io.StringIO()
    csv.writer(row, lineterminator="\r\n").writerow([_cell(record.get(field)) for field in fields])
    return row.getvalue().removesuffix("\r\n") + "\n"


def json_line(record: Mapping[str, Any], fields: Sequence[str]) -> str:
    """A record as one line of JSON."""
    ordered = {field: record.get(field) for field in fields}
    return json_text(json.dumps(ordered, ensure_ascii=False, separators=(",", ":")))


def _cell(value: Any) -> Any:
    """A value as a cell of a table; what is no text or number as JSON."""
    if value is None or isinstance(value, str | int | float):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
