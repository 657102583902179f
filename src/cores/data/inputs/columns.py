"""The columns of a file that hold the molecule, its label, its name and its part.

Properties of an SD file's entries and keys of JSON lines are columns, too; not all rows have all.
"""

from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass
from typing import Any

from cores.errors import UserError, nearest

SMILES = ("smiles", "canonical_smiles", "smi", "mol", "molecule", "structure")
LABEL = ("label", "y", "class", "target", "activity")
ID = (
    "id",
    "mol_id",
    "molecule_id",
    "compound_id",
    "compound",
    "name",
    "identifier",
    "cid",
    "zinc_id",
)
"""Names, in any case, that need not be said; the first that is there counts."""


@dataclass(frozen=True)
class ColumnNames:
    """Columns of a table that a user names; None: found by name where that is obvious."""

    smiles: str | None = None
    label: str | None = None
    """Several names with commas between them for several labels."""
    id: str | None = None
    split: str | None = None
    remembered: "ColumnNames | None" = None
    """Columns of the file that a model was trained on: they count where they are there again."""

    def among(self, known: Container[str]) -> "ColumnNames":
        """With remembered names in place of those that are not said, if they are known.

        >>> names = ColumnNames(id="key", remembered=ColumnNames(label="toxic", id="name"))
        >>> names.among(["name", "toxic"])
        ColumnNames(smiles=None, label='toxic', id='key', split=None, remembered=None)
        """
        before = self.remembered
        if before is None:
            return self
        several = several_names(before.label, known) or (before.label,)
        label = before.label if any(name in known for name in several) else None
        smiles, name = (each if each in known else None for each in (before.smiles, before.id))
        return ColumnNames(
            self.smiles if self.smiles is not None else smiles,
            self.label if self.label is not None else label,
            self.id if self.id is not None else name,
            self.split,
        )


@dataclass(frozen=True)
class ChosenColumns:
    """The columns that are read; None: there is none."""

    smiles: str | None
    label: str | tuple[str, ...] | None
    """A tuple where there are several labels."""
    id: str | None
    split: str | None

    def values(self, get: Callable[[str], Any]) -> tuple[str, Any, str]:
        """The name, label and part of a row, whose values ``get`` returns, None for none."""

        def value(column: str | None) -> Any:
            return None if column is None else get(column)

        name, part = (_text(value(column)) for column in (self.id, self.split))
        if isinstance(self.label, tuple):
            return name, {each: get(each) for each in self.label}, part
        return name, value(self.label), part


def _text(value: Any) -> str:
    """Text that can be written: JSON may hold halves of characters."""
    return "" if value is None else str(value).encode(errors="replace").decode()


def several_names(said: str | None, known: Container[str]) -> tuple[str, ...]:
    """The names of several labels, where more than one is said; none where it is a name itself.

    >>> several_names("a, b", ["a", "b"]), several_names("a,b", ["a,b"]), several_names("a", ["a"])
    (('a', 'b'), (), ())
    """
    if said is None or said in known or "," not in said:
        return ()
    names = tuple(map(column_name, said.split(",")))
    if "" in names or len({*names}) < len(names):
        raise UserError(f"`label_column` needs names that differ, got {said!r}")
    return names


def choose_columns(
    known: Sequence[str] | dict[str, Any], names: ColumnNames, missing: str | None = None
) -> ChosenColumns:
    """Choose among the columns of a row: those that are said, else those with usual names.

    One that is said and not there is refused with a message that begins with ``missing``, if given.
    """
    names = names.among(known)

    def place(said: str | None, option: str, usual: Collection[str]) -> str | None:
        if said is None:
            folded = {name.lower(): name for name in reversed([*known])}
            return next((folded[name] for name in usual if name in folded), None)
        if said not in known and missing is not None:
            raise UserError(f"{missing} {said!r} (`{option}`); {nearest(said, known)}")
        return said

    return ChosenColumns(
        place(names.smiles, "smiles_column", SMILES),
        several_names(names.label, known) or place(names.label, "label_column", LABEL),
        place(names.id, "id_column", ID),
        place(names.split, "split_column", ()),
    )


def table_columns(header: Sequence[str], names: ColumnNames, source: str) -> ChosenColumns:
    """Choose among the columns of a table of molecules; what is said must be there.

    >>> table_columns(["mol_id", "SMILES", "label"], ColumnNames(), "mols.csv")
    ChosenColumns(smiles='SMILES', label='label', id='mol_id', split=None)
    """
    missing = f"{source} has no column"
    for name in several_names(names.label, header):
        choose_columns(header, ColumnNames(label=name), missing)
    chosen = choose_columns(header, names, missing)
    if chosen.smiles is None and len(header) == 1 and ";" in header[0]:
        raise UserError(f"{source} is separated by semicolons; save it with commas")
    if chosen.smiles is None:
        raise UserError(
            f"{source}: no column is named smiles; name the one that holds the molecules with "
            f"`smiles_column` (the first line has {', '.join(header[:8])})"
        )
    return chosen


def column_name(written: str) -> str:
    """The name of a column, as it is said and remembered: without the spaces around it."""
    return " ".join(written.split())
