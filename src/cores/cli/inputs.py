"""Options of every command that reads a user's files."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import Namespace

from cores.cli import display
from cores.cli.command import CommandParser, add_data_root, add_import
from cores.cli.sets import add_lam, add_sets
from cores.config import Reach
from cores.config.presets import own_data_settings
from cores.config.run import AskedTask
from cores.data.catalogue import DATASETS, REGISTERED
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError

if TYPE_CHECKING:
    from cores.data.dataset import Dataset
    from cores.runs.predictor import PredictOptions


def add_run(parser: CommandParser) -> None:
    """The run that a command is about."""
    parser.add_argument("run", metavar="RUN", help="Run folder that `cores train` made.")


def add_input(parser: CommandParser, *, default: str | None = None) -> None:
    """The graphs that a command reads; one that can do without says what it reads then."""
    if default is not None:
        text = f"Graphs, as for `cores predict` (default: {default})."
        parser.add_argument("input", metavar="INPUT", nargs="?", default=None, help=text)
        return
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="csv, tsv, parquet, sdf, smi, jsonl, npz, pt, TU zip or folder, a folder of such "
        "files, or the name of a dataset; labels are not needed.",
    )


def add_predict_options(parser: CommandParser) -> None:
    """Options of every command that predicts what a user asks for."""
    add_sets(parser)
    add_lam(parser)
    add_unknown(parser)
    add_columns(parser)
    add_data_root(parser)
    add_import(parser)


def predict_options(options: Namespace) -> "PredictOptions":
    """How the graphs of an input are predicted."""
    from cores.runs.predictor import PredictOptions

    return PredictOptions(
        alpha=options.alpha,
        score=options.score,
        per_class=options.per_class,
        lam=options.lam,
        columns=column_names(options),
        on_error=options.on_error,
        on_unknown=options.on_unknown,
    )


def add_columns(parser: CommandParser, *, split: bool = False, hidden: bool = False) -> None:
    """Which columns of a table hold what, and what to do with rows that are no graphs.

    Hidden options are shown by ``--help-all`` alone.
    """
    group = parser.add_argument_group("files of molecules and graphs")
    options = {
        "smiles": "Column of the SMILES (default: found by name).",
        "label": "Column of the labels, or a,b,c (default: by name).",
        "id": "Column of the identifiers (default: found by name).",
    }
    if split:
        options["split"] = "Column that says train, val, calibration or test."
    actions = [
        group.add_argument(f"--{name}-column", type=str, default=None, metavar="NAME", help=text)
        for name, text in options.items()
    ]
    on_error = group.add_argument(
        "--on-error",
        type=Literal["skip", "fail"],
        default="skip",
        metavar="{skip,fail}",
        help="Rows that are no graphs (default: skip, and report).",
    )
    for action in (*actions, on_error) if hidden else ():
        parser.hide(action)


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


@dataclass(frozen=True)
class OwnFile:
    """A file of the user's, read once: how long to train depends on its size."""

    dataset: "Dataset"
    columns: ColumnNames

    @property
    def named(self) -> ColumnNames | None:
        """Its columns, where one was named."""
        return None if self.columns == ColumnNames() else self.columns

    @property
    def settings(self) -> dict[str, Any]:
        """The defaults for it."""
        found = own_data_settings(len(self.dataset))
        return found | ({} if self.columns.split is None else {"parts": {"kind": "column"}})

    def note_unusable(self) -> None:
        """Say which rows could not be used."""
        rows = self.dataset.unusable
        if rows is not None and (note := rows.note) is not None:
            display.print_note(note)


def is_named(dataset: str) -> bool:
    """Whether a dataset is known by name; otherwise it is a file of the user's."""
    return dataset in (*DATASETS, *REGISTERED)


def own_file(
    name: str, options: Namespace, task: AskedTask = "auto", reach: Reach | None = None
) -> OwnFile | None:
    """The file that a dataset is; None for one that is known by name.

    ``reach`` is that of the neighbourhoods, where it holds a graph whose nodes are classified.
    """
    columns = column_names(options)
    if is_named(name):
        if columns != ColumnNames():
            raise UserError(f"{name} is no file with columns to name")
        return None
    from cores.data.datasets import load_dataset

    found = load_dataset(name, columns=columns, on_error=options.on_error, task=task, reach=reach)
    return OwnFile(found, columns)
