"""Rows of molecules: from CSV, TSV and Parquet tables with SMILES, and from SD files."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cores.data.inputs.cells import Cells, table_cells
from cores.data.inputs.columns import (
    ID,
    LABEL,
    ColumnNames,
    ColumnPlaces,
    find_columns,
    several_names,
)
from cores.data.inputs.text import text_lines
from cores.data.molecules import (
    InvalidMoleculeError,
    molecule_from_block,
    molecule_from_smiles,
    molecule_graphs,
    needs_rdkit,
)
from cores.data.raw import Layout, Parsed, Rejected
from cores.errors import UserError, nearest
from cores.files.limits import LINE, MEMORY, told_size

END_OF_ENTRY = "$$$$"
_PROPERTY = re.compile(r">.*<([^>]+)>")


@dataclass(frozen=True)
class MoleculeRow:
    """One row of a file, not yet read as a molecule."""

    line: int
    text: str
    """SMILES, or an entry of an SD file."""
    id: str
    """Empty where the file has no name for it; it is called by its position then."""
    label: Any = None
    """Of several, their values by name."""
    part: str = ""
    problem: str = ""
    """Why it cannot be read, if that is known already."""


@dataclass(frozen=True, eq=False)
class MoleculeRows:
    """Rows that follow each other in a file."""

    first: int
    """Position of the first row in the file, from 0."""
    rows: tuple[MoleculeRow, ...]
    blocks: bool = False
    """Whether they are entries of an SD file."""

    def __len__(self) -> int:
        return len(self.rows)

    def after(self, rows: int) -> "MoleculeRows":
        """The same rows, after others of the input."""
        return replace(self, first=rows + self.first)

    def parse(self, layout: Layout | None = None) -> Parsed:
        """Read every row as a molecule, whatever the layout: theirs is always the same.

        One that is none is rejected with its line and name.
        """
        read = molecule_from_block if self.blocks else molecule_from_smiles
        molecules, used, rejected = [], [], []
        for position, unnamed in enumerate(self.rows, self.first):
            row = replace(unnamed, id=unnamed.id or str(position))
            try:
                if row.problem:
                    raise InvalidMoleculeError(row.problem)
                molecules.append(read(row.text))
                used.append((position, row))
            except InvalidMoleculeError as error:
                rejected.append(Rejected(position, row.line, row.id, str(error)))
        return Parsed(
            graphs=molecule_graphs(molecules),
            positions=[position for position, _ in used],
            lines=[row.line for _, row in used],
            ids=[row.id for _, row in used],
            labels=[row.label for _, row in used],
            parts=[row.part for _, row in used],
            molecules=molecules,
            smiles=_smiles(molecules) if self.blocks else [row.text for _, row in used],
            rejected=rejected,
        )


def _smiles(molecules: Sequence[Any]) -> list[str]:
    chem = needs_rdkit()
    return [chem.MolToSmiles(molecule) for molecule in molecules]


def table_rows(path: Path, names: ColumnNames, size: int) -> Iterator[MoleculeRows]:
    """A CSV or TSV file in chunks; the first line names the columns."""
    separator = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    with text_lines(path) as lines:
        table = table_cells(lines, separator)
        header = next(table, None)
        if header is None or not header.values:
            problem = "is empty" if header is None or not header.problem else header.problem
            raise UserError(f"{path} {problem}; its first line must name the columns")
        places = find_columns(header.values, names, str(path))
        # A blank line is no row, but where there is one column it is an empty cell.
        cells = (row for row in table if row.values or row.problem or len(header.values) == 1)
        yield from _chunks((_row(row, places, len(header.values)) for row in cells), size)


def _row(row: Cells, places: ColumnPlaces, width: int) -> MoleculeRow:
    def cell(place: int | None) -> str:
        return "" if place is None or place >= len(row.values) else row.values[place].strip()

    label: Any = None
    if isinstance(places.label, dict):
        label = {name: cell(at) or None for name, at in places.label.items()}
    else:
        label = cell(places.label) or None
    problem = row.problem
    if not problem and len(row.values) != width:
        problem = f"has {len(row.values)} cells, the first line {width}"
    return MoleculeRow(
        row.line,
        cell(places.smiles),
        cell(places.id),
        label,
        cell(places.split),
        problem,
    )


def smi_rows(path: Path, names: ColumnNames, size: int) -> Iterator[MoleculeRows]:
    """A file without a header, in chunks: a SMILES per line, and a name after a space or tab."""
    with text_lines(path) as lines:
        cells = ((number, line.split(None, 1)) for number, line in enumerate(lines, 1))
        filled = ((number, cell) for number, cell in cells if cell)
        rows = (
            MoleculeRow(line, cell[0], cell[1].strip() if len(cell) > 1 else "")
            for line, cell in filled
        )
        yield from _chunks(rows, size)


def parquet_rows(path: Path, names: ColumnNames, size: int) -> Iterator[MoleculeRows]:
    """A Parquet file in chunks."""
    parquet = needs_pyarrow()
    import pyarrow

    try:
        with parquet.ParquetFile(path) as file:
            places = find_columns(file.schema_arrow.names, names, str(path))
            header = file.schema_arrow.names
            several = (
                {name: header[at] for name, at in places.label.items()}
                if isinstance(places.label, dict)
                else {}
            )
            label = None if isinstance(places.label, dict) else places.label
            used = (places.smiles, places.id, label, places.split)
            columns = [None if at is None else header[at] for at in used]
            wanted = list(dict.fromkeys([*filter(None, columns), *several.values()]))
            values = _parquet_values(file, wanted, size, path)
            rows = (
                _parquet_row(row, columns, several, position) for position, row in enumerate(values)
            )
            yield from _chunks(rows, size)
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
    values: dict[str, Any], columns: list[str | None], several: dict[str, str], position: int
) -> MoleculeRow:
    smiles, name, label, part = (None if column is None else values[column] for column in columns)
    return MoleculeRow(
        position + 1,
        "" if smiles is None else str(smiles),
        "" if name is None else str(name),
        {each: values[column] for each, column in several.items()} if several else label,
        "" if part is None else str(part),
    )


def needs_pyarrow() -> Any:
    """The ``pyarrow.parquet`` module."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise UserError("Parquet needs pyarrow: pip install 'cores-gnn[parquet]'") from None
    return parquet


def sdf_rows(path: Path, names: ColumnNames, size: int) -> Iterator[MoleculeRows]:
    """An SD file in chunks; names and labels are its entries' properties."""
    with text_lines(path) as lines:
        yield from _chunks(_entries(lines, names, str(path)), size, blocks=True)


def _entries(file: Iterable[str], names: ColumnNames, source: str) -> Iterator[MoleculeRow]:
    lines: list[str] = []
    longest = LINE.value
    begin, position, length = 1, 0, 0
    for number, line in enumerate(file, 1):
        lines.append(line)
        length += len(line)
        if length > longest:
            LINE.check(length, f"{source}: the entry at line {begin} has {length} characters")
        if line.startswith(END_OF_ENTRY):
            yield _entry(lines, begin, position, names, source)
            lines, begin, position, length = [], number + 1, position + 1, 0
    if any(line.strip() for line in lines):
        yield _entry(lines, begin, position, names, source)


def _entry(
    lines: list[str], line: int, position: int, names: ColumnNames, source: str
) -> MoleculeRow:
    """One entry: its title is its name unless a property is."""
    properties: dict[str, str] = {}
    for number, text in enumerate(lines[:-1]):
        if found := _PROPERTY.match(text):
            properties[found[1]] = lines[number + 1].strip()

    names = names.among(properties)

    def value(said: str | None, option: str, usual: tuple[str, ...]) -> str:
        if said is not None and said not in properties and position == 0:
            raise UserError(
                f"{source}: the first entry has no property {said!r} (`{option}`); "
                f"{nearest(said, properties)}"
            )
        folded = {name.lower(): text for name, text in properties.items()}
        usual_value = next((folded[name] for name in usual if name in folded), "")
        return properties.get(said, "") if said is not None else usual_value

    several = several_names(names.label, properties)
    label: Any = {name: properties.get(name) or None for name in several}
    title = lines[0].strip()
    return MoleculeRow(
        line,
        "".join(lines),
        value(names.id, "id_column", ID) or title,
        label if several else value(names.label, "label_column", LABEL) or None,
        value(names.split, "split_column", ()),
    )


def _chunks(rows: Iterator[MoleculeRow], size: int, blocks: bool = False) -> Iterator[MoleculeRows]:
    first = 0
    while chunk := tuple(islice(rows, size)):
        yield MoleculeRows(first, chunk, blocks)
        first += len(chunk)
