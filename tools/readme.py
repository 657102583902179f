"""The README's claims about the results, and the table at the top of docs/results.md."""

from collections.abc import Collection, Iterable, Sequence

from cores.data.catalogue import PAPER_DATASETS
from cores.runs.rows import Row, spread
from cores_paper.tables.cells import cores_cells, cores_claims
from cores_paper.tables.price import price_claims
from cores_paper.tables.style import mean_percent, percent
from cores_paper.tables.table import Bold, Cell, Table
from cores_paper.tables.targets import BASE_CONV, PLAIN_GNN, SPLITS, paper_policies

FRESH_SPLITS = tuple(range(21, 31))
"""On which the default preset was measured once, after its settings had been committed."""
PAPER = "0.2's `paper` preset"
_HEAD = (
    *("dataset", "nodes: accuracy", "kept", "judge"),
    *("edges: accuracy", "kept", "judge", "plain GNN"),
)


def picked(
    rows: Iterable[Row],
    models: Collection[str],
    splits: Collection[int],
    preset: str = "default",
    conv: str = BASE_CONV,
    *,
    datasets: Collection[str] = PAPER_DATASETS,
    seeds: Collection[int] = (0,),
) -> list[Row]:
    """The rows of some models on some datasets and splits."""
    return [
        row
        for row in rows
        if (row["preset"], row["conv"]) == (preset, conv)
        and row["dataset"] in datasets
        and row["model"] in models
        and int(row["split"]) in splits
        and int(row["seed"]) in seeds
    ]


def readme_claims(rows: Sequence[Row]) -> str:
    """CORES less the plain GNN, and how often it reaches the paper at the published settings."""
    claims = price_claims(_fresh(rows), BASE_CONV)
    models = [PLAIN_GNN, *paper_policies()]
    if published := picked(rows, models, SPLITS, "paper"):
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
    return picked(rows, [PLAIN_GNN, *paper_policies()], FRESH_SPLITS)
