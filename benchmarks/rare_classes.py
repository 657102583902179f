"""Rare classes with known reasons: molecules with a benzene ring, and houses, thinned to a few.

Registers the datasets Benzene_9, Benzene_3 and Motifs_5, of which so many percent are of the rare
class, always the same ones; all graphs of the other class stay. Run as a script, it prints what
comparisons on these datasets come to: mean and deviation over the splits.

    for NAME in Benzene_9 Benzene_3 Motifs_5; do
        cores compare --import benchmarks/rare_classes.py --dataset $NAME \
            --models gnn,gsat,cores-node --splits 1-3 --out runs/rare/$NAME
    done
    python benchmarks/rare_classes.py runs/rare/*/comparison.csv
"""

from functools import partial
from pathlib import Path

import torch

from cores import Dataset, load_dataset, register_dataset
from cores.runs.rows import Row
from cores_paper.tables.table import Table
from inputs import parser, read_rows, spread

RARE = {
    "Benzene_9": ("Benzene", 0.09),
    "Benzene_3": ("Benzene", 0.03),
    "Motifs_5": ("BA_2Motifs", 0.05),
}
"""Datasets by name: of which one, and the share of class 1 that is left."""
SHOWN = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "node_ratio": "nodes kept",
    "node_auc": "node AUC",
    "effect_node_auc": "effect AUC",
    "judge_accuracy": "judge",
}


def thinned(source: str, share: float) -> Dataset:
    """The dataset with so few graphs of class 1 that they are the given share of all."""
    dataset = load_dataset(source)
    y = dataset.graphs.y
    frequent, rare = (y == 0).nonzero().flatten(), (y == 1).nonzero().flatten()
    number = round(share / (1 - share) * len(frequent))
    order = torch.randperm(len(rare), generator=torch.Generator().manual_seed(0))
    return dataset[torch.cat([frequent, rare[order[:number]]]).sort().values]


def rare_table(rows: list[Row]) -> Table:
    """Write a line for each dataset and model that there are rows of."""
    lines = []
    for dataset in RARE:
        for model in dict.fromkeys(row["model"] for row in rows):
            own = [row for row in rows if (row["dataset"], row["model"]) == (dataset, model)]
            if own:
                known = [[100 * float(row[name]) for row in own if row.get(name)] for name in SHOWN]
                cells = [spread(values, 1) if values else "" for values in known]
                lines.append([dataset, model, str(len(own)), *cells])
    return Table(("dataset", "model", "runs", *SHOWN.values()), lines)


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("files", nargs="+", type=Path, help="comparison.csv of `cores compare`")
    rows: list[Row] = [row for path in options.parse_args().files for row in read_rows(path)]
    print(rare_table(rows).markdown())


if __name__ == "__main__":
    main()
else:
    for name, (source, share) in RARE.items():
        register_dataset(name, partial(thinned, source, share))
