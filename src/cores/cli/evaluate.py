"""`cores evaluate`: a saved model, measured again."""

from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from cores.cli import display
from cores.cli.command import Command, CommandParser, add_data_root, add_import
from cores.cli.inputs import add_columns, add_run, add_unknown, column_names
from cores.cli.sets import add_lam, add_sets
from cores.cli.train import TRAIN
from cores.cli.values import path_or_none
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError


def _parser() -> CommandParser:
    parser = CommandParser("Measure a saved model on its own test split, or on another dataset.")
    add_run(parser)
    parser.add_argument(
        "--dataset",
        type=str,
        default=None,
        metavar="NAME",
        help="Another dataset by name or path, with the same labels; all its graphs are used, of "
        "the run's own data the test part.",
    )
    add_sets(parser)
    add_lam(parser)
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
        type=str,
        nargs="+",
        default=[],
        metavar="RUN",
        help="Also measure the overlap with what these runs keep of the same graphs: the same "
        "settings and split, other seeds.",
    )
    add_unknown(parser)
    add_columns(parser)
    add_data_root(parser)
    add_import(parser)
    return parser


def _evaluate(options: Namespace) -> dict[str, Any]:
    from cores.runs.run import evaluate_run

    if options.dataset is None and column_names(options) != ColumnNames():
        raise UserError("the run knows its own columns; naming others needs a `dataset`")
    metrics = evaluate_run(
        Path(options.run),
        dataset=options.dataset,
        data_root=path_or_none(options.data_root),
        device=options.device,
        alpha=options.alpha,
        score=options.score,
        per_class=options.per_class,
        lam=options.lam,
        sample=options.sample,
        explanations=options.explanations,
        others=[Path(run) for run in options.other],
        columns=column_names(options),
        on_error=options.on_error,
        on_unknown=options.on_unknown,
    )
    if errors := metrics.get("errors"):
        first = "; ".join(metrics["first_errors"])
        display.print_note(f"{errors:,} rows could not be used: {first}")
    if not options.json:
        flags = dict(options.flags)
        del flags["lam"]  # verdicts speak of that of the training
        display.print_metrics(metrics, options.run, flags, TRAIN.parser().flags)
    return metrics


EVALUATE = Command("evaluate", "measure a trained model", _parser, _evaluate, takes_scripts=True)
