"""Bemis-Murcko scaffolds: the rings of a molecule and what links them."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cores.errors import UserError


def scaffold_groups(smiles: Sequence[str]) -> NDArray[np.int64]:
    """The number of every molecule's scaffold; molecules without rings share one.

    Numbers follow the first molecule of each scaffold.
    """
    try:
        import rdkit  # noqa: F401 - only whether it is there
    except ImportError:
        raise UserError("scaffold splits need rdkit: pip install 'cores-gnn[chem]'") from None
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(scaffold(molecule), len(numbers)) for molecule in smiles]
    return np.array(found, dtype=np.int64)


@lru_cache(maxsize=200_000)  # a run divides its molecules several times
def scaffold(smiles: str) -> str:
    """SMILES of the scaffold; empty for a molecule without rings."""
    from rdkit import Chem
    from rdkit.Chem.Scaffolds import MurckoScaffold

    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise UserError(f"scaffold splits need SMILES that rdkit can read, got {smiles!r}")
    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=molecule))
