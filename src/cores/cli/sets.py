"""Options of prediction sets and of the dial, for commands on a trained model."""

from typing import get_args, get_type_hints

from jsonargparse import ActionYesNo

from cores.cli.command import CommandParser
from cores.config import SetsConfig

SCORE = get_type_hints(SetsConfig)["score"]


def add_sets(parser: CommandParser) -> None:
    """Error rate, score and calibration per class; the run's own by default."""
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


def add_lam(parser: CommandParser) -> None:
    """The setting of a model that was trained for all of them."""
    parser.add_argument(
        "--lam",
        type=float,
        default=None,
        metavar="X",
        help="Where a dial stands, 0 to 1 by 0.05 (default: the run's).",
    )
