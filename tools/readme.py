"""The README's table of results."""

from collections.abc import Sequence

from cores.config.presets import PAPER_DATASETS
from cores.paper.tables import percent, sparse_cells, sparse_claims
from cores.paper.targets import SPLITS, runs_of
from cores.runs.rows import Row, spread, with_keys
from cores.runs.table import Bold, Cell, Table

_COLUMNS = (
    *("dataset", "nodes: accuracy", "kept", "judge"),
    *("edges: accuracy", "kept", "judge", "plain GNN"),
)


def readme_table(measured: Sequence[Row]) -> str:
    """CORES in both modes by dataset, the paper's means in brackets, and what it comes to."""
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
    lines: list[list[Cell]] = []
    for dataset in PAPER_DATASETS:
        columns: list[Cell] = [dataset]
        for model in ("cores-node", "cores-edge"):
            cell = cells.get((dataset, model))
            if cell is None:
                columns += ["–", "–", "–"]
                continue
            pairs = (cell.accuracy, cell.their_accuracy), (cell.kept, cell.their_kept)
            for ours, theirs in pairs:
                brackets = f" ({percent(theirs).split(' ')[0]})"
                shown = percent(ours)
                columns.append(Bold(shown, brackets) if cell.better else shown + brackets)
            columns.append(percent(cell.judge))
        plain = spread(rows, "accuracy", dataset=dataset, model="gnn")
        lines.append([*columns, percent(plain)])
    claims = sparse_claims(rows, "gin")
    if published:
        first_claim = sparse_claims(published, "gin")[0]
        claims.append(f"Algorithm 1 at the published settings (`paper` preset): {first_claim}")
    return "\n\n".join([Table(_COLUMNS, lines).markdown(), *claims])
