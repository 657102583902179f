"""What the README claims of the results, and the table at the top of docs/results.md."""

from collections.abc import Sequence

from cores.data.catalogue import PAPER_DATASETS
from cores.runs.rows import Row, spread, with_keys
from cores.runs.table import Bold, Cell, Table
from cores_paper.tables.cells import cores_cells, cores_claims
from cores_paper.tables.price import price_claims
from cores_paper.tables.style import mean_percent, percent
from cores_paper.tables.targets import BASE_CONV, PLAIN_GNN, SPLITS, paper_policies, runs_of
from measured import measured_runs

FRESH_SPLITS = tuple(range(21, 31))
"""On which the default preset was measured once, after its settings had been committed."""
PAPER = "0.2's `paper` preset"
_HEAD = (
    *("dataset", "nodes: accuracy", "kept", "judge"),
    *("edges: accuracy", "kept", "judge", "plain GNN"),
)


def readme_claims(rows: Sequence[Row]) -> str:
    """CORES less the plain GNN, and how often it reaches the paper at the published settings."""
    claims = price_claims(_fresh(rows), BASE_CONV)
    models = [PLAIN_GNN, *paper_policies()]
    runs = measured_runs("comparison-gin", PAPER_DATASETS, models, SPLITS, "paper")
    if published := with_keys(rows, runs):
        first, *_ = cores_claims(published, BASE_CONV)
        claims.append(f"Algorithm 1 at the published settings ({PAPER}): {first}")
    return "\n".join(f"- {claim}" for claim in claims)


def summary_table(rows: Sequence[Row]) -> str:
    """CORES in both modes by dataset, the paper's means in brackets."""
    default = _fresh(rows)
    cells = {
        (cell.dataset, model): cell
        for model in paper_policies()
        for cell in cores_cells(default, model, BASE_CONV)
    }
    lines = []
    for dataset in PAPER_DATASETS:
        line: list[Cell] = [dataset]
        for model in paper_policies():
            cell = cells.get((dataset, model))
            if cell is None:
                line += ["–", "–", "–"]
                continue
            pairs = (cell.accuracy, cell.paper_accuracy), (cell.kept, cell.paper_kept)
            for ours, paper in pairs:
                text, brackets = percent(ours), f" ({mean_percent(paper)})"
                line.append(Bold(text, brackets) if cell.better else text + brackets)
            line.append(percent(cell.judge))
        gnn = spread(default, "accuracy", dataset=dataset, model=PLAIN_GNN)
        lines.append([*line, percent(gnn)])
    return Table(_HEAD, lines).markdown()


def _fresh(rows: Sequence[Row]) -> list[Row]:
    models = [PLAIN_GNN, *paper_policies()]
    runs = runs_of("comparison-gin", PAPER_DATASETS, models, FRESH_SPLITS, "default")
    return with_keys(rows, runs)
