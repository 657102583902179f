"""`cores tune`: the least sufficiency of a run at which a promise holds."""

from argparse import BooleanOptionalAction, Namespace
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.options import add_data_root, add_run
from cores.verdict import promise_sentence


def _parser() -> CommandParser:
    parser = CommandParser(
        "Set the sufficiency of a trained model as low as a promise allows: that at most "
        "--max-wrong of the graphs get a wrong class without being weak. The calibration part "
        "decides. Sufficiency and promise are saved with the run, and its test graphs are "
        "measured again."
    )
    add_run(parser)
    parser.add_argument(
        "--max-wrong",
        type=float,
        required=True,
        metavar="X",
        help="Largest share of graphs with a wrong class that are not weak.",
    )
    parser.add_argument(
        "--confidence",
        type=float,
        metavar="X",
        help="Promise it of this very model, with this probability (default: on average over "
        "calibration parts).",
    )
    parser.add_argument(
        "--per-class",
        action=BooleanOptionalAction,
        default=False,
        help="Promise it for every class instead of for all graphs together (default: no).",
    )
    add_data_root(parser)
    return parser


def _tune(options: Namespace) -> dict[str, Any]:
    from cores.runs.promise import Promise
    from cores.runs.tune import tune_run
    from cores.training.judge import EPOCHS

    promise = Promise(options.max_wrong, options.confidence, options.per_class)
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
        found = tuned.promise
        wrong = f"{found['observed_wrong']:.1%} of them got a wrong class without being weak."
        display.print_lines([promise_sentence(found), wrong])
    return {**tuned.promise, "measured_again": tuned.metrics is not None and not tuned.unmeasured}


TUNE = Command("tune", "set a model's sufficiency, with a promise", _parser, _tune)
