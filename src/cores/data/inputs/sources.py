"""Any file or folder of graphs, by its path: which kind it is, and its rows in chunks.

A new kind of file is a reader in a module of its own and a row in :data:`KINDS`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.json_lines import json_rows
from cores.data.inputs.molecules import needs_pyarrow, parquet_rows, sdf_rows, smi_rows, table_rows
from cores.data.inputs.npz import npz_rows
from cores.data.inputs.saved import saved_by_pyg, saved_rows
from cores.data.inputs.tu import tu_rows
from cores.data.raw import Rows
from cores.errors import UserError
from cores.files.limits import check_regular

CHUNK = 1024
"""Rows that are read, and predicted, at once."""

Reader = Callable[[Path, ColumnNames, int], Iterator[Rows]]
"""Yields the rows of a file in chunks of so many; the columns are for files that name theirs."""


@dataclass(frozen=True)
class Kind:
    """A kind of file: how it is read, and what its columns mean."""

    rows: Reader
    holds: Literal["graphs", "molecules"] = "graphs"
    streamed: bool = True
    """It is read row by row; .gz may follow the name then, but for Parquet."""
    named: bool = True
    """Columns of nodes are attributes and labels; else they are features by number."""
    measured: bool = False
    """All attributes are measurements, to be put on one scale; else the numbers decide."""
    labels: str = "say which column holds them with `label_column`"
    """The remedy where there are none."""


_TABLE, _LINES = Kind(table_rows, "molecules"), Kind(json_rows)
_SAVED = Kind(saved_rows, streamed=False, named=False, labels="set the y of every graph")
KINDS = {
    ".csv": _TABLE,
    ".tsv": _TABLE,
    ".parquet": Kind(parquet_rows, "molecules"),
    ".smi": Kind(smi_rows, "molecules"),
    ".sdf": Kind(sdf_rows, "molecules"),
    ".jsonl": _LINES,
    ".ndjson": _LINES,
    ".npz": Kind(npz_rows, streamed=False, named=False, labels="add the array y"),
    ".pt": _SAVED,
    ".pth": _SAVED,
    ".zip": Kind(tu_rows, streamed=False, measured=True, labels="NAME_graph_labels.txt is missing"),
}
"""Kinds of files by the ending of their names; a folder in TU format counts as its zip."""


def suffix_of(path: Path) -> str:
    """The ending that tells the kind of a file, without .gz.

    >>> suffix_of(Path("a/mols.csv.gz")), suffix_of(Path("DD.zip"))
    ('.csv', '.zip')
    """
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix


def _is_streamed(path: Path) -> bool:
    return suffix_of(path) in KINDS and KINDS[suffix_of(path)].streamed


def partitions(path: Path) -> list[Path]:
    """The files that are read row by row: the path itself, or those of its folder in order."""
    if not path.is_dir():
        return [path] if path.exists() and _is_streamed(path) else []
    found = sorted(
        file
        for file in path.iterdir()
        if _is_streamed(file) and not file.name.startswith((".", "_")) and not file.is_dir()
    )
    for file in found:
        check_regular(file)
    kinds = {suffix_of(file) for file in found}
    if len(kinds) > 1:
        raise UserError(f"{path} holds files of several kinds ({', '.join(sorted(kinds))})")
    return found


def holds_rows(path: Path) -> bool:
    """Tell whether a file or folder is read row by row."""
    return bool(partitions(path)) and not (path.is_dir() and any(path.glob("*_A.txt")))


def kind_of(path: Path) -> Kind:
    """The kind of a file or folder."""
    if not path.exists():
        raise UserError(f"{path} does not exist")
    if path.is_dir():
        rows = partitions(path) if holds_rows(path) else []
        return KINDS[suffix_of(rows[0]) if rows else ".pt" if saved_by_pyg(path) else ".zip"]
    check_regular(path)
    suffix = suffix_of(path) if _is_streamed(path) else path.suffix.lower()
    if suffix not in KINDS:
        raise UserError(
            f"{path} is of no known kind; its name must end in .csv, .tsv, .parquet, .sdf, .smi, "
            ".jsonl, .npz, .pt or .zip (TU format)"
        )
    return KINDS[suffix]


def read_rows(path: Path, names: ColumnNames, size: int = CHUNK) -> Iterator[Rows]:
    """The graphs of any file or folder, in chunks of rows."""
    kind = kind_of(path)
    first = 0
    for file in partitions(path) if kind.streamed else [path]:
        count = 0
        for rows in kind.rows(file, names, size):
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
