"""Any file or folder of graphs, by its path: which kind it is, and its rows in chunks."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cores.data.arrays import from_npz
from cores.data.features import tu_graphs
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.json_lines import json_rows
from cores.data.inputs.molecules import needs_pyarrow, parquet_rows, sdf_rows, smi_rows, table_rows
from cores.data.inputs.stored import raw_graphs, saved_graphs, stored_rows
from cores.data.labels import plain_labels
from cores.data.lists import from_graphs
from cores.data.raw import Layout, Parsed, RawGraphs
from cores.data.tu import read_tu
from cores.errors import UserError
from cores.files.limits import check_regular

CHUNK = 1024
"""Rows that are read, and predicted, at once."""


@runtime_checkable
class Rows(Protocol):
    """Rows that follow each other in a file; parsing them may be left to another process."""

    @property
    def first(self) -> int:
        """Position of the first row in the input, from 0."""

    def __len__(self) -> int: ...

    def after(self, rows: int) -> "Rows":
        """The same rows, after others of the input."""

    def parse(self, layout: Layout | None = None) -> Parsed:
        """Read them as graphs, of a layout if one is asked for."""


Reader = Callable[[Path, ColumnNames, int], Iterator[Rows]]
STREAMED: dict[str, Reader] = {
    ".csv": table_rows,
    ".tsv": table_rows,
    ".parquet": parquet_rows,
    ".smi": smi_rows,
    ".sdf": sdf_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
}
"""Files that are read row by row, by their ending; .gz may follow, but for Parquet."""
GRAPHS = (".jsonl", ".ndjson")
"""Those that hold graphs; the others hold molecules."""


def suffix_of(path: Path) -> str:
    """The ending that tells the kind of a file, without .gz.

    >>> suffix_of(Path("a/mols.csv.gz")), suffix_of(Path("DD.zip"))
    ('.csv', '.zip')
    """
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix


def partitions(path: Path) -> list[Path]:
    """The files that are read row by row: the path itself, or those of its folder in order."""
    if not path.is_dir():
        return [path] if path.exists() and suffix_of(path) in STREAMED else []
    found = sorted(
        file
        for file in path.iterdir()
        if suffix_of(file) in STREAMED
        and not file.name.startswith((".", "_"))
        and not file.is_dir()
    )
    for file in found:
        check_regular(file)
    kinds = {suffix_of(file) for file in found}
    if len(kinds) > 1:
        raise UserError(f"{path} holds files of several kinds ({', '.join(sorted(kinds))})")
    return found


def holds_rows(path: Path) -> bool:
    """Whether a file or folder is read row by row."""
    return bool(partitions(path)) and not (path.is_dir() and any(path.glob("*_A.txt")))


def read_rows(path: Path, names: ColumnNames, size: int = CHUNK) -> Iterator[Rows]:
    """The graphs of any file or folder, in chunks of rows."""
    if not path.exists():
        raise UserError(f"{path} does not exist")
    if not path.is_dir():
        check_regular(path)
    if not holds_rows(path):
        yield from stored_rows(*_stored(path), size)
        return
    first = 0
    for file in partitions(path):
        count = 0
        for rows in STREAMED[suffix_of(file)](file, names, size):
            count = rows.first + len(rows)
            yield rows.after(first)
        first += count


def count_rows(path: Path) -> int | None:
    """About how many rows a file has, by its beginning; None where only reading it would tell."""
    if not path.is_file() or not holds_rows(path) or path.suffix.lower() == ".gz":
        return None
    kind = suffix_of(path)
    try:
        if kind == ".parquet":
            return int(needs_pyarrow().ParquetFile(path).metadata.num_rows)
        with path.open("rb") as file:
            begin = file.read(1 << 20)
        marks = begin.count(b"$$$$" if kind == ".sdf" else b"\n")
        return round(marks * path.stat().st_size / max(1, len(begin)))
    except Exception:  # whatever is wrong with the file, reading it tells better
        return None


def _stored(path: Path) -> tuple[RawGraphs, Sequence[Any]]:
    """The graphs and labels of a file that is read at once."""
    if path.suffix.lower() == ".npz":
        arrays = from_npz(path.name, path, labelled=False)
        return raw_graphs(arrays.graphs), arrays.graphs.y.tolist() if arrays.class_names else ()
    if (saved := saved_by_pyg(path)) is not None:
        graphs = saved_graphs(saved)
        labelled = all(graph.get("y") is not None for graph in graphs)
        labels = plain_labels(graphs) if labelled else []
        if any(isinstance(label, float | list) for label in labels):  # no classes
            unlabelled = from_graphs(graphs, [0] * len(graphs), finite=False)
            return raw_graphs(unlabelled.graphs), labels
        dataset = from_graphs(graphs, None if labelled else [0] * len(graphs), finite=False)
        return raw_graphs(dataset.graphs), plain_labels(dataset) if labelled else ()
    records = read_tu(path, labelled=False)
    return tu_graphs(records), records.graph_labels.tolist()


def saved_by_pyg(path: Path) -> Path | None:
    """The file in which PyG saved a dataset: the path itself, or in its folder."""
    if path.suffix.lower() in (".pt", ".pth"):
        return path
    if path.is_dir() and not any(path.glob("*_A.txt")):
        folder = path / "processed" if (path / "processed").is_dir() else path
        found = sorted(file for file in folder.glob("*.pt") if not file.name.startswith("pre_"))
        return found[0] if len(found) == 1 else None
    return None
