"""The page docs/results.md, made from the committed rows alone: ``make results``."""

import sys
from pathlib import Path

from cores.experiments.paper import COMPARISONS, comparison
from cores.experiments.results import Row, read_rows, with_keys
from cores.files import write_atomically
from cores.reports.tables import plain_gnn, plain_gnn_cells
from cores.settings import PAPER_DATASETS

SPLITS = (1, 2, 3, 4, 5)

_HEAD = """# Results

Made by `make results` from the rows in `results/runs.csv`, one per run with its settings' key,
commit and machine; a test checks that this page and the rows agree. Percent, mean ± sample
deviation over the splits. *Balanced* is balanced accuracy, *majority* the accuracy of always
guessing the most frequent class, *mlp* the same network blind to edges, at the settings of the GIN
row. The test sets are small (MUTAG 14 graphs, PTC 35, BZR 41, COX2 47), so one graph is 2 to 7
points.

## The plain GNN at the published settings

`paper` preset: the published settings and split sizes per dataset and conv, five splits, weights of
the epoch that was best on the validation part (deviation D1; the paper reports the last epoch).
*Reached*: our mean is at least the paper's minus one of the paper's deviations. The rows come from

```
cores reproduce comparison-gin --models gnn,mlp --workers N --rows results/runs.csv
SMALL=BZR,COX2,ENZYMES,MUTAG,PROTEINS,PTC
cores reproduce comparison-gcn --models gnn --datasets $SMALL --workers N --rows results/runs.csv
cores reproduce comparison-gat --models gnn --datasets $SMALL --workers N --rows results/runs.csv
```
"""
_MOTIFS = """## The plain GNN on motifs, at the default settings

`default` preset: one setting for all datasets, with parts of their own for selection and
calibration.

```
cores reproduce comparison-gin --models gnn --datasets motifs,BA_2Motifs --preset default \\
    --rows results/runs.csv
```
"""


_PROVENANCE = """The row names the machine a run ended on: the five GIN runs on NCI1 did their
first 630 epochs or so on a CPU. The rows of the motifs were measured with changes on top of the
commit they name that were committed later.
"""


def results_page(folder: Path) -> str:
    """The text of the page."""
    rows = read_rows(folder / "runs.csv")
    tables = {target: _rows_of(target, rows) for target in COMPARISONS}
    cells = [
        cell
        for target, conv in COMPARISONS.items()
        for cell in plain_gnn_cells(tables[target], conv, "paper")
    ]
    whole = [cell for cell in cells if cell.ours.runs == len(SPLITS)]
    reached = sum(cell.reached for cell in whole)
    claim = f"Reached in **{reached} of {len(whole)}** cells."
    if len(whole) < len(cells):
        claim += f" Cells with fewer than {len(SPLITS)} runs are not counted yet."
    sections = [_HEAD, f"{claim}\n"]
    for target, conv in COMPARISONS.items():
        sections.append(f"### {conv.upper()}\n\n{plain_gnn(tables[target], conv, 'paper')}\n")
    motifs = with_keys(
        rows, comparison("comparison-gin", ["motifs", "BA_2Motifs"], ["gnn"], SPLITS, "default")
    )
    sections.append(f"{_MOTIFS}\n{plain_gnn(motifs, 'gin', 'default')}\n")
    sections.append(_machines(rows))
    return "\n".join(sections)


def _rows_of(target: str, rows: list[Row]) -> list[Row]:
    """The runs of one table, at the settings as they are now; the mlp stands in every table."""
    gnn = comparison(target, PAPER_DATASETS, ["gnn"], SPLITS, "paper")
    mlp = comparison("comparison-gin", PAPER_DATASETS, ["mlp"], SPLITS, "paper")
    return with_keys(rows, [*gnn, *mlp])


def _machines(rows: list[Row]) -> str:
    """Where the rows were measured; accuracies do not depend on it beyond rounding."""
    kinds = sorted({row["machine"] for row in rows})
    counts = ", ".join(f"{sum(row['machine'] == kind for row in rows)} on {kind}" for kind in kinds)
    return f"Runs: {counts}. {_PROVENANCE}"


if __name__ == "__main__":
    results, page = map(Path, sys.argv[1:])
    write_atomically(page, results_page(results).encode())
