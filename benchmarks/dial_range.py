"""How far does the dial steer? The kept share of test graphs over lambda, of several runs.

    python benchmarks/dial_range.py RUN… [--data-root FOLDER]

Prints a line per run: the share of nodes or edges that is kept at every tenth of lambda, and its
rank correlation with lambda.
"""

import argparse
from pathlib import Path

from scipy.stats import spearmanr

from cores.evaluation.predictions import predict
from cores.models.sparse import SparseClassifier
from cores.runs.device import tuned_cpu
from cores.runs.run import Run
from cores.runs.table import Table
from cores.runs.trained import TrainedModel

SETTINGS = [step / 10 for step in range(11)]


def kept_shares(run: Path, data_root: Path | None) -> tuple[TrainedModel, list[float]]:
    """The model of a run, and what it keeps of its test graphs at every setting."""
    opened = Run.open(run, device="cpu")
    trained = opened.trained
    graphs, _ = opened.test_graphs(opened.dataset(data_root))
    shares = []
    for lam in SETTINGS:
        model = trained.at(lam).model
        assert isinstance(model, SparseClassifier)
        kept = predict(model, graphs).kept_ratio(graphs, model.policy.removal)
        shares.append(float(kept.mean()))
    return trained, shares


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--data-root", type=Path, default=None, metavar="FOLDER")
    options = parser.parse_args()
    lines = []
    with tuned_cpu():
        for run in options.runs:
            trained, shares = kept_shares(run, options.data_root)
            rank = float(spearmanr(SETTINGS, shares).statistic)
            texts = [f"{share:.2f}" for share in shares]
            lines.append([trained.config.dataset, trained.config.model, *texts, f"{rank:.2f}"])
    print(Table(["dataset", "model", *map(str, SETTINGS), "rank"], lines).markdown())


if __name__ == "__main__":
    main()
