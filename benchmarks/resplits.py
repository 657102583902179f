"""Do prediction sets and promises hold on real graphs that are divided anew many times?

    python benchmarks/resplits.py coverage RUN… [--draws 50]
    python benchmarks/resplits.py promise RUN… [--draws 50] [--max-loss 0.05] [--confidence 0.9]

The graphs are those of a run's calibration and test part, from which its model has learnt nothing.

``coverage`` divides them into halves; one half calibrates, the other is covered, and then the other
way round: where the one covers too little, the other covers too much, so that their mean is far
less noisy. Prints, for every error rate, the mean coverage beside its expectation,
``ceil((n + 1) * (1 - alpha)) / (n + 1)`` for n calibration graphs, over all graphs (one quantile)
and for every class (one quantile per class).

``promise`` draws as many graphs as the calibration part has, `cores tune` sets the dial by half of
them, and all others say what is lost there. Prints, for every loss and kind of promise, the mean
loss with its standard error, the share of draws above the bound, and what is kept. A draw without a
setting that can be promised keeps full graphs, and loses nothing.
"""

import argparse
import math
from collections import defaultdict
from dataclasses import replace
from statistics import fmean

import torch
from torch import Tensor

from cores.config import SetsConfig
from cores.config.policy import SETTINGS
from cores.data.dataset import Dataset
from cores.data.splits import split_dataset
from cores.errors import UserError
from cores.evaluation.predictions import predict
from cores.runs.device import tuned_cpu
from cores.runs.promise import LOSSES, Promise, tuned_model
from cores.runs.trained import DialCalibration, TrainedModel, calibrate
from cores.tasks.calibration import ClassCalibration
from cores_paper.tables.table import Table
from inputs import add_runs, load_run, parser, spread

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


def pooled(first: DialCalibration, second: DialCalibration) -> DialCalibration:
    """Join both parts."""
    return DialCalibration(
        torch.cat([first.probs, second.probs], dim=1),
        torch.cat([first.kept_ratio, second.kept_ratio], dim=1),
        torch.cat([first.full_probs, second.full_probs]),
        torch.cat([first.labels, second.labels]),
        first.chosen_by,
    )


def part(graphs: DialCalibration, index: Tensor) -> DialCalibration:
    """Select some of the graphs, by which no dial was set."""
    return DialCalibration(
        graphs.probs[:, index],
        graphs.kept_ratio[:, index],
        graphs.full_probs[index],
        graphs.labels[index],
        torch.empty(0, dtype=torch.long),
    )


def drawn(
    trained: TrainedModel, graphs: DialCalibration, order: Tensor, promise: Promise
) -> tuple[float, float, bool]:
    """Set the dial by the first graphs of an order; the others' loss and kept share."""
    assert trained.dial is not None
    calibration = part(graphs, order[: len(trained.dial.labels)])
    try:
        tuned, found = tuned_model(replace(trained, dial=calibration), promise)
    except UserError:
        return 0.0, 1.0, False
    assert tuned.dial is not None
    unseen = torch.ones(len(order), dtype=torch.bool)
    unseen[tuned.dial.chosen_by] = False
    others, place = part(graphs, order[unseen]), SETTINGS.index(found["lam"])
    losses = LOSSES[promise.loss](
        others.full_probs.argmax(dim=-1),
        others.probs[place].argmax(dim=-1)[:, None],
        others.labels,
    )
    return float(losses.double().mean()), float(others.kept_ratio[place].mean()), True


def promises(trained: TrainedModel, data: Dataset, given: argparse.Namespace) -> list[list[str]]:
    """Measure every loss, promised on average and with a probability."""
    _, tested = calibrate(trained.model, data.graphs.subset(trained.test))
    if trained.dial is None or tested is None:
        raise SystemExit(f"{data.name}, {trained.config.model}: the run has no dial")
    graphs, lines = pooled(trained.dial, tested), []
    for loss in LOSSES:
        for confidence in (None, given.confidence):
            promise = Promise(given.max_loss, loss, confidence, per_class=False)
            generator = torch.Generator().manual_seed(0)
            found = []
            for _ in range(given.draws):
                order = torch.randperm(len(graphs.labels), generator=generator)
                found.append(drawn(trained, graphs, order, promise))
            losses = torch.tensor([loss for loss, *_ in found], dtype=torch.double)
            error = float(losses.std()) / len(found) ** 0.5
            lines.append(
                [
                    *(f"{data.name}, {trained.config.model}", loss),
                    "on average" if confidence is None else f"with probability {confidence}",
                    f"{given.max_loss:g}",
                    f"{float(losses.mean()):.4f} ± {error:.4f}",
                    f"{float((losses > given.max_loss).double().mean()):.2f}",
                    f"{fmean(kept for _, kept, _ in found):.2f}",
                    f"{sum(promised for *_, promised in found)} of {len(found)}",
                ]
            )
    return lines


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("what", choices=["coverage", "promise"])
    add_runs(options)
    options.add_argument("--draws", type=int, default=50, help="an even number")
    options.add_argument("--max-loss", type=float, default=0.05)
    options.add_argument("--confidence", type=float, default=0.9)
    given = options.parse_args()
    lines = []
    with tuned_cpu():
        for run in given.runs:
            trained, data = load_run(run, given.data_root)
            if given.what == "promise":
                lines += promises(trained, data, given)
                continue
            parts = split_dataset(data, trained.config.split, trained.config.parts)
            graphs = data.graphs.subset(torch.cat([parts.calibration, parts.test]))
            lines += coverage(predict(trained.model, graphs).probs, graphs.y, given.draws)
    heads = {
        "coverage": "alpha, group, coverage, expected, difference in points",
        "promise": "run, loss, promise, bound, mean loss, above, kept, promised",
    }
    print(Table(heads[given.what].split(", "), lines).markdown())


if __name__ == "__main__":
    main()
