"""`cores evaluate`: a saved model, measured again."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

from jsonargparse import ActionYesNo, Namespace

from cores.cli import display
from cores.cli.command import Command, CommandParser, add_data_root, add_import
from cores.cli.values import path_or_none
from cores.config import SetsConfig

SCORE = get_type_hints(SetsConfig)["score"]


def _parser() -> CommandParser:
    parser = CommandParser("Measure a saved model on its own test split, or on another dataset.")
    parser.add_argument("run", metavar="RUN", help="Run folder that `cores train` made.")
    parser.add_argument(
        "--dataset",
        type=str,
        default=None,
        metavar="NAME",
        help="Another dataset with the same features and labels; all its graphs are used.",
    )
    parser.add_argument(
        "--alpha",
        type=float,
        default=None,
        metavar="X",
        help="Error rate of the prediction sets (default: the run's).",
    )
    parser.add_argument(
        "--score",
        type=SCORE,
        default=None,
        metavar="{" + ",".join(get_args(SCORE)) + "}",
        help="Conformal score of the prediction sets (default: the run's).",
    )
    parser.add_argument(
        "--per-class",
        action=ActionYesNo(no_prefix="no-"),
        default=None,
        help="One quantile per class instead of one for all (default: the run's).",
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="Sample the subgraphs from the policy, seeded, instead of taking its mode.",
    )
    add_data_root(parser)
    add_import(parser)
    return parser


def _evaluate(options: Namespace) -> dict[str, Any]:
    from cores.runs.run import evaluate_run

    metrics = evaluate_run(
        Path(options.run),
        dataset=options.dataset,
        data_root=path_or_none(options.data_root),
        device=options.device,
        alpha=options.alpha,
        score=options.score,
        per_class=options.per_class,
        sample=options.sample,
    )
    if not options.json:
        display.print_metrics(metrics, options.run, options.flags)
    return metrics


EVALUATE = Command("evaluate", "measure a trained model", _parser, _evaluate, takes_scripts=True)
