"""The page docs/results.md, made from the committed rows alone: ``make results``."""

import sys
from pathlib import Path

from cores.experiments.results import Row, read_rows
from cores.files import write_atomically
from cores.reports.tables import CONVS, plain_gnn, plain_gnn_cells

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
cores reproduce comparison-gcn --models gnn --datasets {small} --workers N --rows results/runs.csv
cores reproduce comparison-gat --models gnn --datasets {small} --workers N --rows results/runs.csv
```
"""
_SMALL = "BZR,COX2,ENZYMES,MUTAG,PROTEINS,PTC"
_MOTIFS = """## The plain GNN on motifs, at the default settings

`default` preset: one setting for all datasets, with parts of their own for selection and
calibration.

```
cores reproduce comparison-gin --models gnn --datasets motifs,BA_2Motifs --preset default \\
    --rows results/runs.csv
```
"""


def results_page(folder: Path) -> str:
    """The text of the page."""
    rows = read_rows(folder / "runs.csv")
    sections = [_HEAD.replace("{small}", _SMALL)]
    cells = [cell for conv in CONVS for cell in plain_gnn_cells(rows, conv, "paper")]
    reached = sum(cell.reached for cell in cells)
    sections.append(f"Reached in **{reached} of {len(cells)}** cells.\n")
    for conv in CONVS:
        if plain_gnn_cells(rows, conv, "paper"):
            sections.append(f"### {conv.upper()}\n\n{plain_gnn(rows, conv, 'paper')}\n")
    if plain_gnn_cells(rows, "gin", "default"):
        sections.append(f"{_MOTIFS}\n{plain_gnn(rows, 'gin', 'default')}\n")
    sections.append(_machines(rows))
    return "\n".join(sections)


def _machines(rows: list[Row]) -> str:
    """Where the rows were measured; accuracies do not depend on it beyond rounding."""
    kinds = sorted({row["machine"] for row in rows})
    counts = ", ".join(f"{sum(row['machine'] == kind for row in rows)} on {kind}" for kind in kinds)
    return f"Runs: {counts}.\n"


if __name__ == "__main__":
    results, page = map(Path, sys.argv[1:])
    write_atomically(page, results_page(results).encode())
