"""Do prediction sets cover on real graphs that are divided anew many times?

    python benchmarks/coverage.py RUN… [--draws 50]

The graphs are those of a run's calibration and test part, from which its model has learnt nothing.
They are divided into halves; one half calibrates, the other is covered, and then the other way
round: where the one covers too little, the other covers too much, so that their mean is far less
noisy. Prints, for every error rate, the mean coverage beside its expectation,
``ceil((n + 1) * (1 - alpha)) / (n + 1)`` for n calibration graphs, over all graphs (one quantile)
and for every class (one quantile per class).
"""

import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from cores.config import SetsConfig
from cores.data.splits import split_dataset
from cores.evaluation.predictions import predict_told
from cores.runs.device import tuned_cpu
from cores.runs.opened import Run
from cores.tasks.calibration import ClassCalibration
from cores_paper.tables.table import Table
from inputs import parser, spread

ALPHAS = (0.05, 0.1, 0.2)


def coverage(probs: Tensor, labels: Tensor, draws: int) -> list[list[str]]:
    """Measure the coverage of random halves, of which each calibrates once."""
    order = torch.Generator().manual_seed(0)
    covered: dict[tuple[float, str], list[float]] = defaultdict(list)
    expected: dict[tuple[float, str], list[float]] = defaultdict(list)

    def count(alpha: float, group: str, hits: Tensor, calibrating: int) -> None:
        rank = math.ceil(round((calibrating + 1) * (1 - alpha), 9))
        covered[alpha, group].append(float(hits.double().mean()))
        expected[alpha, group].append(min(1.0, rank / (calibrating + 1)))

    for _ in range(draws // 2):
        halves = torch.randperm(len(labels), generator=order).tensor_split([len(labels) // 2])
        for first, second in (halves, halves[::-1]):
            calibration, truth = ClassCalibration(probs[first], labels[first]), labels[second]
            for alpha in ALPHAS:
                sets = calibration.sets(probs[second], alpha, SetsConfig())
                count(alpha, "all graphs", sets.gather(1, truth[:, None]), len(first))
                sets = calibration.sets(probs[second], alpha, SetsConfig(per_class=True))
                for label in range(probs.size(1)):
                    size = int((labels[first] == label).sum())
                    count(alpha, f"class {label}", sets[truth == label, label], size)
    return [
        [
            *(f"{alpha}", group, spread(values, 4), f"{fmean(expected[alpha, group]):.4f}"),
            f"{100 * (fmean(values) - fmean(expected[alpha, group])):+.2f}",
        ]
        for (alpha, group), values in covered.items()
    ]


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    options.add_argument("--data-root", type=Path, metavar="FOLDER")
    options.add_argument("--draws", type=int, default=50, help="an even number")
    given = options.parse_args()
    lines = []
    with tuned_cpu():
        for path in given.runs:
            run = Run.open(path, device="cpu")
            trained, data = run.trained, run.dataset(given.data_root)
            parts = split_dataset(data, trained.config.split, trained.config.parts)
            graphs = data.graphs.subset(torch.cat([parts.calibration, parts.test]))
            lines += coverage(predict_told(trained.model, graphs), graphs.y, given.draws)
    head = ("alpha", "group", "coverage", "expected", "difference in points")
    print(Table(head, lines).markdown())


if __name__ == "__main__":
    main()
