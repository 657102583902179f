"""Which columns of a table hold the molecule, its label, its name and its part."""

from collections.abc import Sequence
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
    id: str | None = None
    split: str | None = None
    remembered: "ColumnNames | None" = None
    """Of the file that a model was trained on: they count where they are there again."""


@dataclass(frozen=True)
class ColumnPlaces:
    """Where the columns stand; None: the table has none."""

    smiles: int
    label: int | None
    id: int | None
    split: int | None


def find_columns(header: Sequence[str], names: ColumnNames, source: str) -> ColumnPlaces:
    """Look the columns up in a table's header.

    >>> find_columns(["mol_id", "SMILES", "label"], ColumnNames(), "mols.csv")
    ColumnPlaces(smiles=1, label=2, id=0, split=None)
    """
    known = [" ".join(name.split()) for name in header]

    before = names.remembered or ColumnNames()

    def place(
        said: str | None, option: str, usual: Sequence[str], remembered: str | None = None
    ) -> int | None:
        if said is not None:
            if said not in known:
                raise UserError(
                    f"{source} has no column {said!r} (`{option}`); {nearest(said, known)}"
                )
            return known.index(said)
        if remembered in known:
            return known.index(remembered)
        folded = [name.lower() for name in known]
        return next((folded.index(name) for name in usual if name in folded), None)

    smiles = place(names.smiles, "smiles_column", SMILES, before.smiles)
    if smiles is None and len(known) == 1 and ";" in known[0]:
        raise UserError(f"{source} is separated by semicolons; save it with commas")
    if smiles is None:
        raise UserError(
            f"{source}: no column is named smiles; name the one that holds the molecules with "
            f"`smiles_column` (the first line has {', '.join(known[:8])})"
        )
    return ColumnPlaces(
        smiles,
        place(names.label, "label_column", LABEL, before.label),
        place(names.id, "id_column", ID, before.id),
        place(names.split, "split_column", ()),
    )
