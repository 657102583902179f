"""Do prediction sets hold the true label as often as promised?

    python benchmarks/coverage.py RUN --resplits 50

The calibration and test graphs of a trained run, which neither classifier nor policy was trained or
selected on, are divided into halves anew many times; one half calibrates, the other is covered, and
then the other way round: where the one covers too little, the other covers too much, so that their
mean is far less noisy. Prints, for every error rate, the mean coverage beside its expectation,
``ceil((n + 1) * (1 - alpha)) / (n + 1)`` for n calibration graphs, over all graphs (one quantile)
and for every class (one quantile per class).
"""

import argparse
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev

import torch
from torch import Tensor

from cores.config import SetsConfig
from cores.data.splits import split_dataset
from cores.evaluation.predictions import predict
from cores.evaluation.sets import Calibration
from cores.runs.device import tuned_cpu
from cores.runs.run import Run

ALPHAS = (0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Coverage:
    """Coverage over resplits, of all graphs or of one class."""

    alpha: float
    group: str
    mean: float
    deviation: float
    expected: float

    @property
    def row(self) -> str:
        """Of a Markdown table."""
        cells = (
            f"{self.alpha}",
            self.group,
            f"{self.mean:.4f} ± {self.deviation:.4f}",
            f"{self.expected:.4f}",
            f"{100 * (self.mean - self.expected):+.2f}",
        )
        return f"| {' | '.join(cells)} |"


def expectation(alpha: float, calibration: int) -> float:
    """Coverage on average over calibration and test graphs, where no two scores are equal."""
    return min(1.0, math.ceil(round((calibration + 1) * (1 - alpha), 9)) / (calibration + 1))


def held_out(run: Path, data_root: Path | None) -> tuple[Tensor, Tensor]:
    """Probabilities and labels of the graphs that a run set aside."""
    opened = Run.open(run, device="cpu")
    trained, dataset = opened.trained, opened.dataset(data_root)
    parts = split_dataset(dataset, trained.config.split, trained.config.parts)
    graphs = dataset.graphs.subset(torch.cat([parts.calibration, parts.test]))
    with tuned_cpu():
        return predict(trained.model, graphs).probs, graphs.y


def resplit(probs: Tensor, labels: Tensor, resplits: int, seed: int = 0) -> list[Coverage]:
    """Coverage over random halves, of which each calibrates once."""
    if resplits % 2:
        raise SystemExit(f"an even number of resplits: both halves calibrate; got {resplits}")
    order = torch.Generator().manual_seed(seed)
    groups = {"all graphs": SetsConfig()} | {
        f"class {label}": replace(SetsConfig(), per_class=True) for label in range(probs.size(1))
    }
    found: dict[tuple[float, str], list[tuple[float, float]]] = {}
    halves = []
    for _ in range(resplits // 2):
        shuffled = torch.randperm(len(labels), generator=order)
        first, second = shuffled[: len(labels) // 2], shuffled[len(labels) // 2 :]
        halves += [(first, second), (second, first)]
    for first, second in halves:
        calibration = Calibration(probs[first], labels[first])
        for alpha in ALPHAS:
            for number, (group, config) in enumerate(groups.items()):
                sets = calibration.sets(probs[second], alpha, config)
                covered = sets.gather(1, labels[second][:, None]).squeeze(1).double()
                size = len(first)
                if config.per_class:
                    covered = covered[labels[second] == number - 1]
                    size = int((labels[first] == number - 1).sum())
                values = float(covered.mean()), expectation(alpha, size)
                found.setdefault((alpha, group), []).append(values)
    return [
        Coverage(
            alpha,
            group,
            mean(covered for covered, _ in values),
            stdev(covered for covered, _ in values),
            mean(expected for _, expected in values),
        )
        for (alpha, group), values in found.items()
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--resplits", type=int, default=50)
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = resplit(*held_out(options.run, options.data_root), options.resplits)
    if options.json:
        print(json.dumps([vars(row) for row in rows]))
        return
    print("| alpha | group | coverage | expected | difference, points |\n|---|---|---|---|---|")
    for row in rows:
        print(row.row)


if __name__ == "__main__":
    main()
