"""The tables and claims of a target of `cores reproduce`, and their files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cores.config.models import conv_spec
from cores.files import write_atomically
from cores.runs.rows import Row
from cores_paper.tables.cells import cores_claims
from cores_paper.tables.comparison import comparison_tables
from cores_paper.tables.price import price_claims
from cores_paper.tables.rows import rows_of_conv
from cores_paper.tables.style import removal_titles
from cores_paper.tables.table import Table
from cores_paper.tables.tables import ablation_table, cores_table, gnn_table
from cores_paper.tables.targets import ABLATIONS, PLAIN_GNN, TARGET_CONVS, policies


def tables_of(rows: Sequence[Row], target: str, preset: str) -> dict[str, Table]:
    """Every table of a target that there are runs for, by caption."""
    if target in ABLATIONS:
        setting = ABLATIONS[target].setting
        return {f"Kept ratio and accuracy over {setting}, percent": ablation_table(rows, target)}
    tables: dict[str, Table] = {}
    for conv in TARGET_CONVS[target]:
        conv_rows = rows_of_conv(rows, conv)
        models = {row["model"] for row in conv_rows}
        found: dict[str, Table] = {}
        if PLAIN_GNN in models:
            found["The plain GNN"] = gnn_table(conv_rows, conv, preset)
        titles = removal_titles([model for model in policies() if model in models])
        for model, title in titles.items():
            found[f"CORES {title}"] = cores_table(conv_rows, model, conv)
        if len(models) > 1 or (models and not found):
            found |= comparison_tables(conv_rows, conv)
        tables |= {
            f"{caption} ({conv_spec(conv).title}), percent": table
            for caption, table in found.items()
        }
    return tables


def claims_of(rows: Sequence[Row], target: str) -> list[str]:
    """How the CORES models of a target compare with the paper, a sentence each, in Markdown."""
    return [
        f"{conv_spec(conv).title}: {claim}"
        for conv in TARGET_CONVS.get(target, ())
        if any(row["conv"] == conv and row["model"] in policies() for row in rows)
        for claims in (cores_claims, price_claims)
        for claim in claims([row for row in rows if row["conv"] == conv], conv)
    ]


def write_tables(tables: Mapping[str, Table], claims: Sequence[str], stem: Path) -> list[Path]:
    """Write tables as Markdown, with the claims, and as LaTeX; returns the files."""
    sections = [f"## {caption}\n\n{table.markdown()}\n" for caption, table in tables.items()]
    latex = [table.latex(f"{caption}.") for caption, table in tables.items()]
    texts = {
        ".md": "\n".join([*sections, *(f"{claim}\n" for claim in claims)]),
        ".tex": "\n\n".join(latex) + "\n",
    }
    files = []
    for suffix, text in texts.items():
        files.append(stem.with_suffix(suffix))
        write_atomically(files[-1], text.encode())
    return files
