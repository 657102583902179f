"""`cores tune`: the sparsest setting of a run's dial that keeps a promise."""

from pathlib import Path
from typing import Any, Literal

from jsonargparse import ActionYesNo, Namespace

from cores.cli import display
from cores.cli.command import Command, CommandParser, add_import
from cores.cli.inputs import add_run


def _parser() -> CommandParser:
    parser = CommandParser(
        "Set the dial of a trained model (reward.dial) where it keeps least and a promise holds: "
        "that no more is lost than --max-loss against the full graphs. Half of the calibration "
        "part decides, the other half calibrates the prediction sets; the setting is saved with "
        "the run."
    )
    add_run(parser)
    parser.add_argument(
        "--max-loss", type=float, required=True, metavar="X", help="The largest loss, a share."
    )
    parser.add_argument(
        "--confidence",
        type=float,
        default=None,
        metavar="X",
        help="Promise it of this very model, with this probability (default: on average over "
        "calibration parts).",
    )
    parser.add_argument(
        "--loss",
        type=Literal["excess", "disagreement", "accuracy"],
        default="excess",
        help="What is lost: right on the full graph and wrong on the kept part (default), another "
        "class than on the full graph, or accuracy.",
    )
    parser.add_argument(
        "--per-class",
        action=ActionYesNo(no_prefix="no-"),
        default=True,
        help="Promise it for every class instead of for all graphs together (default: yes).",
    )
    add_import(parser)
    return parser


def _tune(options: Namespace) -> dict[str, Any]:
    from cores.runs.tune import Promise, tune_run

    promise = Promise(options.max_loss, options.loss, options.confidence, options.per_class)
    found = tune_run(Path(options.run), promise)
    if not options.json:
        display.print_lines(_sentences(found))
    return found


def _sentences(found: dict[str, Any]) -> list[str]:
    whom = "Of every class" if found["per_class"] else "Of all graphs"
    said = {
        "excess": "are right on the full graph and wrong on the kept part",
        "disagreement": "get another class than on the full graph",
        "accuracy": "less are right than on the full graphs",
    }[found["loss"]]
    how = "on average over calibration parts"
    if found["confidence"] is not None:
        how = f"with a confidence of {found['confidence']:.0%}"
    return [
        f"{whom}, at most {found['max_loss']:.1%} {said}, {how}.",
        f"lambda {found['lam']:g}: {found['kept_ratio']:.1%} is kept, {found['observed_loss']:.1%} "
        f"is lost on the {found['graphs']:,} graphs that decided.",
        f"Prediction sets are calibrated by the other {found['calibration_graphs']:,}.",
    ]


TUNE = Command("tune", "set a model's dial, with a promise", _parser, _tune, takes_scripts=True)
