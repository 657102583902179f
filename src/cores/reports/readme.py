"""The README's table, made from the committed rows alone: ``make results``."""

import sys
from pathlib import Path

from cores.errors import UserError
from cores.experiments.paper import runs_of
from cores.experiments.results import read_rows, spread, with_keys
from cores.files import write_atomically
from cores.reports.markdown import markdown
from cores.reports.page import SPLITS
from cores.reports.tables import percent, sparse_cells, sparse_claims
from cores.settings import PAPER_DATASETS

BEGIN, END = "<!-- made by make results: begin -->", "<!-- made by make results: end -->"

_COLUMNS = (
    *("dataset", "nodes: accuracy", "nodes: kept", "edges: accuracy", "edges: kept"),
    "plain GNN",
)


def table(folder: Path) -> str:
    """CORES in both modes by dataset, the paper's means in brackets, and what it comes to."""
    measured = read_rows(folder / "runs.csv")
    models = ["gnn", "cores-node", "cores-edge"]
    rows, published = (
        with_keys(measured, runs_of("comparison-gin", PAPER_DATASETS, models, SPLITS, preset))
        for preset in ("default", "paper")
    )
    cells = {
        (cell.dataset, model): cell
        for model in ("cores-node", "cores-edge")
        for cell in sparse_cells(rows, model, "gin")
    }
    lines = []
    for dataset in PAPER_DATASETS:
        columns = [dataset]
        for model in ("cores-node", "cores-edge"):
            cell = cells.get((dataset, model))
            if cell is None:
                columns += ["–", "–"]
                continue
            mark = "**" if cell.better else ""
            pairs = (cell.accuracy, cell.their_accuracy), (cell.kept, cell.their_kept)
            columns += [
                f"{mark}{percent(ours)}{mark} ({percent(theirs).split(' ')[0]})"
                for ours, theirs in pairs
            ]
        plain = spread(rows, "accuracy", dataset=dataset, model="gnn")
        lines.append((*columns, percent(plain)))
    claims = sparse_claims(rows, "gin")
    if published:
        theirs = sparse_claims(published, "gin")[0]
        claims.append(f"Algorithm 1 as it is written, at the published settings: {theirs}")
    return "\n\n".join([markdown(_COLUMNS, lines), *claims]) + "\n"


def with_table(readme: str, folder: Path) -> str:
    """A README with the table between its two marks."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"the README needs the lines {BEGIN} and {END} around its table")
    return f"{before}{BEGIN}\n\n{table(folder)}\n{END}{after}"


if __name__ == "__main__":
    results, readme = map(Path, sys.argv[1:])
    write_atomically(readme, with_table(readme.read_text(encoding="utf-8"), results).encode())
