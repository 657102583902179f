"""Rows of molecules: from CSV, TSV and Parquet tables with SMILES, and from SD files."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cores.data.inputs.columns import (
    ChosenColumns,
    ColumnNames,
    choose_columns,
    column_name,
    table_columns,
)
from cores.data.inputs.text import Cells, table_cells, text_lines
from cores.data.molecules import (
    molecule_from_block,
    molecule_from_smiles,
    molecule_graphs,
    needs_rdkit,
)
from cores.data.raw import Layout, Parsed, Row, Rows, chunked
from cores.errors import UserError
from cores.files.limits import LINE, MEMORY, told_size

END_OF_ENTRY = "$$$$"
_PROPERTY = re.compile(r">.*<([^>]+)>")


def _parse(
    first: int, rows: Sequence[Row], layout: Layout | None = None, blocks: bool = False
) -> Parsed:
    """Read every row as a molecule, whatever the layout: theirs is always the same.

    ``blocks`` are entries of an SD file.
    """
    read = molecule_from_block if blocks else molecule_from_smiles
    parsed, molecules = Parsed.of_rows(first, rows, read, molecule_graphs)
    if blocks:
        smiles = [needs_rdkit().MolToSmiles(molecule) for molecule in molecules]
    else:
        refused = {row.position - first for row in parsed.rejected}
        smiles = [row.content for at, row in enumerate(rows) if at not in refused]
    return replace(parsed, molecules=molecules, smiles=smiles)


def _chunked(rows: Iterable[Row], size: int, parser: Any = _parse) -> Iterator[Rows]:
    return chunked(rows, size, parser, "molecules")


def table_rows(path: Path, names: ColumnNames, size: int) -> Iterator[Rows]:
    """A CSV or TSV file in chunks; the first line names the columns."""
    separator = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    with text_lines(path) as lines:
        table = table_cells(lines, separator)
        first = next(table, None)
        if first is None or not first.values:
            problem = "is empty" if first is None or not first.problem else first.problem
            raise UserError(f"{path} {problem}; its first line must name the columns")
        header = [*map(column_name, first.values)]
        columns, width = table_columns(header, names, str(path)), len(header)
        places = {name: header.index(name) for name in header}
        # A blank line is no row, but where there is one column it is an empty cell.
        cells = (row for row in table if row.values or row.problem or width == 1)
        yield from _chunked((_table_row(row, columns, places, width) for row in cells), size)


def _table_row(row: Cells, columns: ChosenColumns, places: dict[str, int], width: int) -> Row:
    def cell(column: str) -> str | None:
        place = places.get(column, width)
        return (row.values[place].strip() or None) if place < len(row.values) else None

    problem = row.problem
    if not problem and len(row.values) != width:
        problem = f"has {len(row.values)} cells, the first line {width}"
    smiles = cell(columns.smiles or "") or ""
    return Row(row.line, smiles, *columns.values(cell), problem)


def smi_rows(path: Path, names: ColumnNames, size: int) -> Iterator[Rows]:
    """A file without a header, in chunks: a SMILES per line, and a name after a space or tab."""
    with text_lines(path) as lines:
        cells = ((number, line.split(None, 1)) for number, line in enumerate(lines, 1))
        named = ((line, [*cell, ""]) for line, cell in cells if cell)
        yield from _chunked((Row(at, cell[0], cell[1].strip()) for at, cell in named), size)


def parquet_rows(path: Path, names: ColumnNames, size: int) -> Iterator[Rows]:
    """A Parquet file in chunks."""
    parquet = needs_pyarrow()
    import pyarrow

    try:
        with parquet.ParquetFile(path) as file:
            written = {column_name(name): name for name in reversed(file.schema_arrow.names)}
            columns = table_columns([*map(column_name, file.schema_arrow.names)], names, str(path))
            label = columns.label if isinstance(columns.label, tuple) else (columns.label,)
            used = (columns.smiles, columns.id, columns.split, *label)
            wanted = list(dict.fromkeys(written[name] for name in used if name in written))
            rows = enumerate(_parquet_values(file, wanted, size, path), 1)
            yield from _chunked((_parquet_row(*row, columns, written) for row in rows), size)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path} is not a readable Parquet file ({reason})") from None


def _parquet_values(
    file: Any, wanted: list[str], size: int, path: Path
) -> Iterator[dict[str, Any]]:
    """The rows of some columns; a group of rows is unpacked at once."""
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        chunks = (group.column(place) for place in range(group.num_columns))
        unpacked = sum(
            chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in wanted
        )
        MEMORY.check(unpacked, f"{path}: row group {number} unpacks to {told_size(unpacked)}")
    for batch in file.iter_batches(batch_size=size, columns=wanted):
        MEMORY.check(batch.nbytes, f"{path}: {len(batch)} rows unpack to {told_size(batch.nbytes)}")
        yield from batch.to_pylist()


def _parquet_row(
    line: int, values: dict[str, Any], columns: ChosenColumns, written: dict[str, str]
) -> Row:
    def get(column: str) -> Any:
        return values.get(written.get(column, ""))

    smiles = get(columns.smiles or "")
    return Row(line, "" if smiles is None else str(smiles), *columns.values(get))


def needs_pyarrow() -> Any:
    """The ``pyarrow.parquet`` module."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise UserError("Parquet needs pyarrow: pip install 'cores-gnn[parquet]'") from None
    return parquet


def sdf_rows(path: Path, names: ColumnNames, size: int) -> Iterator[Rows]:
    """An SD file in chunks; names and labels are its entries' properties."""
    with text_lines(path) as lines:
        entries = _entries(lines, names, str(path))
        yield from _chunked(entries, size, partial(_parse, blocks=True))


def _entries(file: Iterable[str], names: ColumnNames, source: str) -> Iterator[Row]:
    missing: str | None = f"{source}: the first entry has no property"
    lines: list[str] = []
    longest = LINE.value
    begin, length = 1, 0
    for number, line in enumerate(file, 1):
        lines.append(line)
        length += len(line)
        if length > longest:
            LINE.check(length, f"{source}: the entry at line {begin} has {length} characters")
        if line.startswith(END_OF_ENTRY):
            yield _entry(lines, begin, names, missing)
            lines, begin, length, missing = [], number + 1, 0, None
    if any(line.strip() for line in lines):
        yield _entry(lines, begin, names, missing)


def _entry(lines: list[str], line: int, names: ColumnNames, missing: str | None) -> Row:
    """One entry: its title is its name unless a property is."""
    properties: dict[str, str] = {}
    for number, text in enumerate(lines[:-1]):
        if found := _PROPERTY.match(text):
            properties[found[1]] = lines[number + 1].strip()
    columns = choose_columns(properties, names, missing)
    name, label, part = columns.values(lambda column: properties.get(column) or None)
    return Row(line, "".join(lines), name or lines[0].strip(), label, part)
