"""`cores evaluate`: a saved model, measured again."""

from argparse import Namespace
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.inputs import add_predict_options, add_run, column_names, predict_options
from cores.cli.train import TRAIN
from cores.cli.values import named_path
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError


def _parser() -> CommandParser:
    parser = CommandParser("Measure a saved model on its own test split, or on another dataset.")
    add_run(parser)
    parser.add_argument(
        "--dataset",
        metavar="NAME",
        help="Another dataset by name or path, with the same labels; all its graphs are used, of "
        "the run's own data the test part.",
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="Sample the subgraphs from the policy, seeded, instead of taking its mode.",
    )
    parser.add_argument(
        "--explanations",
        action="store_true",
        help="Also measure how faithful the kept parts are: sufficiency, comprehensiveness, "
        "fidelity, idempotence, stability.",
    )
    parser.add_argument(
        "--other",
        type=named_path,
        nargs="+",
        default=[],
        metavar="RUN",
        help="Also measure the overlap with what these runs keep of the same graphs: the same "
        "settings and split, other seeds.",
    )
    add_predict_options(parser)
    return parser


def _evaluate(options: Namespace) -> dict[str, Any]:
    from cores.runs.run import evaluate_run

    if options.dataset is None and column_names(options) != ColumnNames():
        raise UserError("the run knows its own columns; naming others needs a `dataset`")
    metrics = evaluate_run(
        options.run,
        predict_options(options),
        dataset=options.dataset,
        data_root=options.data_root,
        device=options.device,
        sample=options.sample,
        explanations=options.explanations,
        others=options.other,
    )
    if errors := metrics.get("errors"):
        first = "; ".join(metrics["first_errors"])
        display.print_note(f"{errors:,} rows could not be used: {first}")
    if not options.json:
        flags = dict(options.flags)
        del flags["lam"]  # verdicts speak of that of the training
        display.print_metrics(metrics, str(options.run), flags, TRAIN.parser().flags)
    return metrics


EVALUATE = Command("evaluate", "measure a trained model", _parser, _evaluate, takes_scripts=True)
