"""`cores equal-risk`: how much each method may cut away at the same controlled loss."""

from argparse import Namespace
from typing import Any

from cores import UserError
from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.compare import Comparison, add_comparison
from cores.cli.options import names
from cores.config.models import CONVS
from cores_paper.cli.compare_explanations import add_methods, asked_methods
from cores_paper.explain.equal_risk_rows import METRICS, ORDERS, order_of, table_of


def _parser() -> CommandParser:
    parser = CommandParser(
        "Compare how little the dial of CORES and the scores of other methods keep at the same "
        "controlled loss: graphs that its classifier gets right in full and wrong cut down. That "
        "classifier predicts for all. The selection part chooses how scores cut (one threshold, "
        "or the same share of every graph), the calibration part the sparsest cut that keeps the "
        "promise, and the test part is measured. Rows are written to equal-risk.csv as they come, "
        "and the same command continues after an interruption.",
        usage="cores equal-risk --dataset NAME [options]",
    )
    add_methods(parser, ORDERS)
    parser.add_argument(
        "--max-loss",
        default="0.02,0.05,0.1",
        metavar="SHARES",
        help="The largest losses, with commas (default: 0.02,0.05,0.1).",
    )
    parser.add_argument(
        "--confidence",
        type=float,
        metavar="X",
        help="Promise it of this very classifier, with this probability (default: on average "
        "over calibration parts).",
    )
    parser.add_argument(
        "--removal",
        choices=("node", "edge"),
        default="node",
        help="What is cut away (default: node).",
    )
    add_comparison(parser, "equal-risk")
    return parser


def _compare(options: Namespace) -> dict[str, Any]:
    methods, seeds = asked_methods(options, order_of)
    losses = _shares(options.max_loss)
    from cores.runs.rows import as_measured
    from cores_paper.explain.equal_risk import ROWS, check_promises, equal_risk, models_of

    check_promises(losses, options.confidence)
    asked = Comparison.of(options)
    cases = len(asked.options["splits"]) * len(seeds)
    steps = cases * (len(models_of(methods, options.removal)) + len(methods))
    with display.runs_progress(steps, options.flags, "runs and methods") as advance:
        rows = equal_risk(
            asked.dataset,
            methods,
            asked.out,
            **asked.options,
            removal=options.removal,
            max_losses=losses,
            confidence=options.confidence,
            seeds=seeds,
            done=asked.noted(advance),
            measured=lambda name: advance(name, None),
        )
    if rows and not options.json:
        _print(rows, asked.dataset, options)
        display.print_lines([f"Rows: {asked.out / ROWS}"])
    asked.check_failures()
    measured = [as_measured(row, METRICS) for row in rows]
    return {"dataset": asked.dataset, "out": str(asked.out / ROWS), "rows": measured}


TABLES = {
    "kept_ratio": "Kept at the loss that is promised",
    "loss": "Lost on the test graphs",
    "accuracy": "Accuracy on the test graphs",
}
"""What is shown of every method, and above it."""


def _print(rows: list[dict[str, str]], dataset: str, options: Namespace) -> None:
    about = f"{dataset} ({CONVS[options.conv].title}), {rows[0]['graphs']} test graphs"
    lines = [f"{about}; {options.removal}s are cut, in percent", *_notes(rows, options.confidence)]
    display.print_lines(lines)
    for metric, caption in TABLES.items():
        display.print_columns(caption, *table_of(rows, metric))


def _notes(rows: list[dict[str, str]], confidence: float | None) -> list[str]:
    """List the losses that the calibration part is too small for: there, nothing is cut."""
    from cores.risk import graphs_needed

    graphs = int(rows[0]["calibration_graphs"])
    delta = None if confidence is None else 1 - confidence
    needed = {loss: graphs_needed(float(loss), delta) for loss in {row["max_loss"] for row in rows}}
    return [
        f"A loss of {loss} takes {number} calibration graphs, there are {graphs}: nothing is cut"
        for loss, number in sorted(needed.items(), key=lambda item: float(item[0]))
        if number > graphs
    ]


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in names(text, "--max-loss")]
    except ValueError:
        raise UserError(f"--max-loss takes shares such as 0.02,0.05, got {text!r}") from None


EQUAL_RISK = Command(
    "equal-risk",
    "what methods keep at the same controlled loss",
    _parser,
    _compare,
    after_interrupt="the same command continues",
)
