"""`cores tune`: the sparsest setting of a run's dial that keeps a promise."""

from argparse import BooleanOptionalAction, Namespace
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.options import add_data_root, add_run
from cores.verdict import promise_sentence


def _parser() -> CommandParser:
    parser = CommandParser(
        "Set the dial of a trained model (reward.dial) where it keeps least and a promise holds: "
        "that no more is lost than --max-loss against the full graphs. Half of the calibration "
        "part decides, the other half calibrates the prediction sets. Setting and promise are "
        "saved with the run, and its test graphs are measured again."
    )
    add_run(parser)
    parser.add_argument(
        "--max-loss", type=float, required=True, metavar="X", help="The largest loss, a share."
    )
    parser.add_argument(
        "--confidence",
        type=float,
        metavar="X",
        help="Promise it of this very model, with this probability (default: on average over "
        "calibration parts).",
    )
    parser.add_argument(
        "--loss",
        choices=("excess", "disagreement", "accuracy"),
        default="excess",
        help="What is lost: right on the full graph and wrong on the kept part (default), another "
        "class than on the full graph, or accuracy.",
    )
    parser.add_argument(
        "--per-class",
        action=BooleanOptionalAction,
        default=True,
        help="Promise it for every class instead of for all graphs together (default: yes).",
    )
    add_data_root(parser)
    return parser


def _tune(options: Namespace) -> dict[str, Any]:
    from cores.runs.promise import Promise
    from cores.runs.tune import tune_run
    from cores.training.judge import EPOCHS

    promise = Promise(options.max_loss, options.loss, options.confidence, options.per_class)
    with display.rows_progress("epochs of the judge", EPOCHS) as advance:
        tuned = tune_run(
            options.run,
            promise,
            data_root=options.data_root,
            device=options.device,
            judge_report=lambda epoch, metrics: advance(1),
        )
    if tuned.unmeasured is not None:
        display.print_note(f"the metrics are still those of before: {tuned.unmeasured}")
    if not options.json:
        display.print_lines(_sentences(tuned.promise))
    return {**tuned.promise, "measured_again": tuned.metrics is not None and not tuned.unmeasured}


def _sentences(found: dict[str, Any]) -> list[str]:
    return [
        promise_sentence(found),
        f"{found['kept_ratio']:.1%} is kept, {found['observed_loss']:.1%} is lost on the "
        f"{found['graphs']:,} graphs that decided; the other {found['calibration_graphs']:,} "
        "calibrate the prediction sets.",
    ]


TUNE = Command("tune", "set a model's dial, with a promise", _parser, _tune)
