"""Which columns of a table hold the molecule, its label, its name and its part."""

from collections.abc import Container, Sequence
from dataclasses import dataclass

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
    """What a user says of a table's columns; None: found by name where that is obvious."""

    smiles: str | None = None
    label: str | None = None
    """Several names with commas between them for several labels."""
    id: str | None = None
    split: str | None = None
    remembered: "ColumnNames | None" = None
    """Of the file that a model was trained on: they count where they are there again."""

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
class ColumnPlaces:
    """Where the columns stand; None: the table has none."""

    smiles: int
    label: int | dict[str, int] | None
    """Of several labels, by their names."""
    id: int | None
    split: int | None


def several_names(said: str | None, known: Container[str]) -> tuple[str, ...]:
    """The names of several labels, where more than one is said; none where it is a name itself.

    >>> several_names("a, b", ["a", "b"]), several_names("a,b", ["a,b"]), several_names("a", ["a"])
    (('a', 'b'), (), ())
    """
    if said is None or said in known or "," not in said:
        return ()
    names = tuple(" ".join(name.split()) for name in said.split(","))
    if "" in names or len({*names}) < len(names):
        raise UserError(f"`label_column` needs names that differ, got {said!r}")
    return names


def find_columns(header: Sequence[str], names: ColumnNames, source: str) -> ColumnPlaces:
    """Look the columns up in a table's header.

    >>> find_columns(["mol_id", "SMILES", "label"], ColumnNames(), "mols.csv")
    ColumnPlaces(smiles=1, label=2, id=0, split=None)
    """
    known = [" ".join(name.split()) for name in header]

    def named(said: str, option: str) -> int:
        if said not in known:
            raise UserError(f"{source} has no column {said!r} (`{option}`); {nearest(said, known)}")
        return known.index(said)

    def place(said: str | None, option: str, usual: Sequence[str]) -> int | None:
        if said is not None:
            return named(said, option)
        folded = [name.lower() for name in known]
        return next((folded.index(name) for name in usual if name in folded), None)

    label_is_said = names.label is not None
    names = names.among(known)
    smiles = place(names.smiles, "smiles_column", SMILES)
    if smiles is None and len(known) == 1 and ";" in known[0]:
        raise UserError(f"{source} is separated by semicolons; save it with commas")
    if smiles is None:
        raise UserError(
            f"{source}: no column is named smiles; name the one that holds the molecules with "
            f"`smiles_column` (the first line has {', '.join(known[:8])})"
        )
    label: int | dict[str, int] | None
    if several := several_names(names.label, known):
        there = [name for name in several if label_is_said or name in known]
        label = {name: named(name, "label_column") for name in there}
    else:
        label = place(names.label, "label_column", LABEL)
    return ColumnPlaces(
        smiles,
        label,
        place(names.id, "id_column", ID),
        place(names.split, "split_column", ()),
    )
