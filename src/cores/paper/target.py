"""What a target of `cores reproduce` comes to: tables and figures, ours beside the paper's."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cores.files import write_atomically
from cores.paper.comparison import comparison_tables
from cores.paper.tables import (
    SPARSE_MODELS,
    ablation,
    of_conv,
    plain_gnn,
    sparse,
    sparse_claims,
)
from cores.paper.targets import ABLATIONS, CONVS
from cores.runs.rows import Row
from cores.runs.table import Table

_SPARSE = {
    "cores-node": "CORES removing nodes",
    "cores-edge": "CORES removing edges",
    "cores-both": "CORES removing both",
}


def tables_of(rows: Sequence[Row], target: str, preset: str) -> dict[str, Table]:
    """Every table of a target that there are runs for, by its caption."""
    if target in ABLATIONS:
        setting = ABLATIONS[target].setting
        return {f"Kept ratio and accuracy over {setting}, percent": ablation(rows, target)}
    tables: dict[str, Table] = {}
    for conv in CONVS[target]:
        mine = of_conv(rows, conv)
        models = {row["model"] for row in mine}
        found: dict[str, Table] = {}
        if "gnn" in models:
            found["The plain GNN"] = plain_gnn(mine, conv, preset)
        for model in SPARSE_MODELS:
            if model in models:
                found[_SPARSE[model]] = sparse(mine, model, conv)
        if len(models) > 1 or (models and not found):
            found |= comparison_tables(mine, conv)
        tables |= {
            f"{caption} ({conv.upper()}), percent": table for caption, table in found.items()
        }
    return tables


def claims_of(rows: Sequence[Row], target: str) -> list[str]:
    """What the tables come to, a sentence each."""
    return [
        f"{conv.upper()}: {claim}"
        for conv in CONVS.get(target, ())
        if any(row["conv"] == conv and row["model"] in SPARSE_MODELS for row in rows)
        for claim in sparse_claims([row for row in rows if row["conv"] == conv], conv)
    ]


def write_tables(tables: Mapping[str, Table], claims: Sequence[str], stem: Path) -> list[Path]:
    """Write tables as Markdown and as LaTeX; returns the files."""
    markdown = [f"## {caption}\n\n{table.markdown()}\n" for caption, table in tables.items()]
    texts = {
        ".md": "\n".join([*markdown, *(f"{claim}\n" for claim in claims)]),
        ".tex": "\n\n".join(table.latex(f"{caption}.") for caption, table in tables.items()) + "\n",
    }
    files = []
    for suffix, text in texts.items():
        files.append(stem.with_suffix(suffix))
        write_atomically(files[-1], text.encode())
    return files
