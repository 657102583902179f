"""Do promises hold on real graphs? Calibration and test part of runs, divided anew many times.

    python benchmarks/promise_resplits.py RUN… [--draws 50] [--max-loss 0.05] [--confidence 0.9]

The model of a run has learnt from neither part. In every draw, as many graphs as the calibration
part has are drawn from both, `cores tune` sets the dial by half of them, and all other graphs say
what is lost there. Prints a line per run, loss and kind of promise: the mean loss over the draws,
with its standard error, the share of draws above the bound, and what is kept. A draw without a
setting that can be promised keeps full graphs, and loses nothing.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from cores.config.policy import SETTINGS
from cores.errors import UserError
from cores.runs.device import tuned_cpu
from cores.runs.promise import LOSSES, Promise, tuned_model
from cores.runs.run import Run
from cores.runs.table import Table
from cores.runs.trained import DialCalibration, TrainedModel, calibrate


@dataclass(frozen=True)
class Draw:
    """What a promise came to in one draw."""

    loss: float
    kept: float
    promised: bool


def pooled(first: DialCalibration, second: DialCalibration) -> DialCalibration:
    """Both parts as one."""
    return DialCalibration(
        torch.cat([first.probs, second.probs], dim=1),
        torch.cat([first.kept_ratio, second.kept_ratio], dim=1),
        torch.cat([first.full_probs, second.full_probs]),
        torch.cat([first.labels, second.labels]),
        first.chosen_by,
    )


def part(graphs: DialCalibration, index: Tensor) -> DialCalibration:
    """Some of the graphs, by which no dial was set."""
    return DialCalibration(
        graphs.probs[:, index],
        graphs.kept_ratio[:, index],
        graphs.full_probs[index],
        graphs.labels[index],
        torch.empty(0, dtype=torch.long),
    )


def drawn(trained: TrainedModel, graphs: DialCalibration, order: Tensor, promise: Promise) -> Draw:
    """Set the dial by the first graphs of an order, and see what the others lose."""
    size = len(trained.dial.labels) if trained.dial is not None else 0
    calibration = part(graphs, order[:size])
    try:
        tuned, found = tuned_model(replace(trained, dial=calibration), promise)
    except UserError:
        return Draw(0.0, 1.0, promised=False)
    assert tuned.dial is not None
    unseen = torch.ones(len(order), dtype=torch.bool)
    unseen[tuned.dial.chosen_by] = False
    others = part(graphs, order[unseen])
    place = SETTINGS.index(found["lam"])
    losses = LOSSES[promise.loss](
        others.full_probs.argmax(dim=-1),
        others.probs[place].argmax(dim=-1)[:, None],
        others.labels,
    )
    return Draw(float(losses.double().mean()), float(others.kept_ratio[place].mean()), True)


def line(name: str, draws: list[Draw], promise: Promise) -> list[str]:
    """Of the table."""
    losses = torch.tensor([draw.loss for draw in draws], dtype=torch.double)
    error = float(losses.std()) / len(draws) ** 0.5
    kept = sum(draw.kept for draw in draws) / len(draws)
    kind = "on average" if promise.confidence is None else f"with probability {promise.confidence}"
    return [
        *(name, promise.loss, kind, f"{promise.max_loss:g}"),
        f"{float(losses.mean()):.4f} ± {error:.4f}",
        f"{float((losses > promise.max_loss).double().mean()):.2f}",
        f"{kept:.2f}",
        f"{sum(draw.promised for draw in draws)} of {len(draws)}",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--draws", type=int, default=50, metavar="N")
    parser.add_argument("--max-loss", type=float, default=0.05, metavar="X")
    parser.add_argument("--confidence", type=float, default=0.9, metavar="X")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--data-root", type=Path, default=None, metavar="FOLDER")
    options = parser.parse_args()
    lines = []
    for run in options.runs:
        opened = Run.open(run, device="cpu")
        trained, data = opened.trained, opened.dataset(options.data_root)
        with tuned_cpu():
            test, _ = opened.test_graphs(data)
            _, tested = calibrate(trained.model, test)
        if trained.dial is None or tested is None:
            raise SystemExit(f"{run} has no dial")
        graphs = pooled(trained.dial, tested)
        name = f"{data.name}, {trained.config.model}"
        for loss in LOSSES:
            for confidence in (None, options.confidence):
                promise = Promise(options.max_loss, loss, confidence, per_class=False)
                generator = torch.Generator().manual_seed(options.seed)
                draws = [
                    drawn(
                        trained,
                        graphs,
                        torch.randperm(len(graphs.labels), generator=generator),
                        promise,
                    )
                    for _ in range(options.draws)
                ]
                lines.append(line(name, draws, promise))
    head = ["run", "loss", "promise", "bound", "mean loss", "above", "kept", "promised"]
    print(Table(head, lines).markdown())


if __name__ == "__main__":
    main()
