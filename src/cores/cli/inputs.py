"""Options of every command that reads a user's files."""

from typing import Literal

from jsonargparse import Namespace

from cores.cli.command import CommandParser
from cores.data.inputs.columns import ColumnNames


def add_columns(parser: CommandParser, *, split: bool = False) -> None:
    """Which columns of a table hold what, and what to do with rows that are no graphs."""
    group = parser.add_argument_group("files of molecules and graphs")
    options = {
        "smiles": "Column of the SMILES (default: found by name).",
        "label": "Column or SD property of the labels (default: by name).",
        "id": "Column of the identifiers (default: found by name).",
    }
    if split:
        options["split"] = "Column that says train, val, calibration or test."
    for name, text in options.items():
        group.add_argument(f"--{name}-column", type=str, default=None, metavar="NAME", help=text)
    group.add_argument(
        "--on-error",
        type=Literal["skip", "fail"],
        default="skip",
        metavar="{skip,fail}",
        help="Rows that are no graphs (default: skip, and report).",
    )


def add_unknown(parser: CommandParser) -> None:
    """What to do with labels of nodes or edges that the model does not know."""
    parser.add_argument(
        "--on-unknown",
        type=Literal["error", "ignore"],
        default="error",
        metavar="{error,ignore}",
        help="Node or edge labels that no graph of the training had (default: error).",
    )


def column_names(options: Namespace) -> ColumnNames:
    """The columns that were named."""
    return ColumnNames(
        smiles=options.smiles_column,
        label=options.label_column,
        id=options.id_column,
        split=options.get("split_column"),
    )
