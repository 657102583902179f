"""Options that commands share, and what is read from them."""

from argparse import BooleanOptionalAction, Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from cores.cli import display
from cores.cli.command import CommandParser
from cores.config import ExplanationConfig, Reach, SetsConfig
from cores.config.presets import own_data_settings
from cores.config.run import AskedTask
from cores.data.catalogue import DATASETS, REGISTERED
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError

if TYPE_CHECKING:
    from cores.data.dataset import Dataset
    from cores.runs.cluster import Certificates
    from cores.runs.inputs import PredictOptions

TLS = {
    "tls_ca": "The authority of the certificates of a scheduler at tls://, in PEM format "
    "(default: as in dask's configuration).",
    "tls_cert": "Our own certificate for that scheduler.",
    "tls_key": "The key of our certificate.",
}


def add_run(parser: CommandParser) -> None:
    """Add the run that a command is about."""
    parser.add_path("run", "RUN", "Run folder that `cores train` made.")


def add_data_root(parser: CommandParser) -> None:
    """Add the folder of the datasets."""
    parser.add_path(
        "--data-root",
        "FOLDER",
        "Folder with tu/NAME.zip and other/NAME.npz, or PyG's layout (default: CORES_DATA).",
    )


def add_sets(parser: CommandParser) -> None:
    """Add error rate, score and calibration per class of the sets; the run's own by default."""
    parser.add_argument(
        "--alpha",
        type=float,
        metavar="X",
        help="Error rate of the sets (default: the run's).",
    )
    parser.add_argument(
        "--score",
        choices=get_args(get_type_hints(SetsConfig)["score"]),
        help="Conformal score of the sets (default: the run's).",
    )
    parser.add_argument(
        "--per-class",
        action=BooleanOptionalAction,
        help="One quantile per class (default: the run's).",
    )


def add_predict_options(parser: CommandParser) -> None:
    """Add the options of every command that predicts what a user asks for."""
    add_sets(parser)
    parser.add_argument(
        "--sufficiency",
        type=float,
        metavar="X",
        help="tau of a sufficient part (default: the run's).",
    )
    parser.add_argument(
        "--parts",
        choices=get_args(get_type_hints(ExplanationConfig)["parts"]),
        help="Which part is shown (default: the run's).",
    )
    parser.add_argument(
        "--on-unknown",
        choices=("error", "ignore"),
        default="error",
        help="Node or edge labels that no graph of the training had (default: error).",
    )
    add_columns(parser)
    add_data_root(parser)


def predict_options(options: Namespace) -> "PredictOptions":
    """Collect the options of predictions."""
    from cores.runs.inputs import PredictOptions

    return PredictOptions(
        alpha=options.alpha,
        score=options.score,
        per_class=options.per_class,
        sufficiency=options.sufficiency,
        parts=options.parts,
        columns=column_names(options),
        on_error=options.on_error,
        on_unknown=options.on_unknown,
    )


def add_columns(parser: CommandParser, *, split: bool = False, hidden: bool = False) -> None:
    """Add which columns of a table hold what, and what to do with rows that are no graphs.

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
        group.add_argument(f"--{name}-column", metavar="NAME", help=text)
        for name, text in options.items()
    ]
    on_error = group.add_argument(
        "--on-error",
        choices=("skip", "fail"),
        default="skip",
        help="Rows that are no graphs (default: skip, and report).",
    )
    for action in (*actions, on_error) if hidden else ():
        parser.in_full(action)


def column_names(options: Namespace) -> ColumnNames:
    """Read the names of columns."""
    return ColumnNames(
        smiles=options.smiles_column,
        label=options.label_column,
        id=options.id_column,
        split=getattr(options, "split_column", None),
    )


@dataclass(frozen=True)
class OwnFile:
    """A file of the user's, read once: how long to train depends on its size."""

    dataset: "Dataset"
    columns: ColumnNames

    @property
    def named(self) -> ColumnNames | None:
        """Names of its columns; None if all are found by name."""
        return None if self.columns == ColumnNames() else self.columns

    @property
    def settings(self) -> dict[str, Any]:
        """Defaults that suit it."""
        found = own_data_settings(len(self.dataset))
        return found | ({} if self.columns.split is None else {"parts": {"kind": "column"}})

    def note_unusable(self) -> None:
        """Say which rows could not be used."""
        rows = self.dataset.unusable
        if rows is not None and (note := rows.note) is not None:
            display.print_note(note)


def is_named(dataset: str) -> bool:
    """Tell whether a dataset is known by name; otherwise it is a file of the user's."""
    return dataset in (*DATASETS, *REGISTERED)


def own_file(
    name: str, options: Namespace, task: AskedTask = "auto", reach: Reach | None = None
) -> OwnFile | None:
    """Read the file that a dataset is; None for one that is known by name.

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


def add_scheduler(parser: CommandParser, text: str) -> None:
    """Add the address of a scheduler, and the files by which it knows us."""
    parser.add_argument("--scheduler", metavar="ADDRESS", help=text)
    for name, help_text in TLS.items():
        parser.add_path(f"--{name.replace('_', '-')}", "FILE.pem", help_text)


def certificates(options: Namespace) -> "Certificates | None":
    """Read the certificates, all three or none."""
    from cores.runs.cluster import Certificates

    given = {name: path for name in TLS if (path := getattr(options, name)) is not None}
    if not given:
        return None
    if options.scheduler is None:
        raise UserError("certificates are for a --scheduler; name its address")
    if missing := [name for name in TLS if name not in given]:
        needed = ", ".join(f"`{name}`" for name in TLS)
        raise UserError(f"certificates need {needed}; there is no `{missing[0]}`")
    return Certificates(**given)


def names(text: str, option: str) -> list[str]:
    """Split a list with commas into names, at least one, each once.

    >>> names("MUTAG, PTC,", "--datasets")
    ['MUTAG', 'PTC']
    """
    found = [name for part in text.split(",") if (name := part.strip())]
    if not found:
        raise UserError(f"{option} names nothing; leave it out for all")
    return list(dict.fromkeys(found))


def numbers(text: str, option: str, first: int) -> list[int]:
    """Read numbers from a list with commas and ranges, each once, none below the first.

    >>> numbers("1-3,2,7", "--splits", first=1)
    [1, 2, 3, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        lowest, _, highest = part.partition("-")
        try:
            least, most = int(lowest), int(highest or lowest)
        except ValueError:
            least, most = 0, -1
        if not first <= least <= most < least + 1000:
            raise UserError(f"{option} takes numbers from {first} such as 1-5 or 1,3, got {text!r}")
        found.extend(range(least, most + 1))
    return list(dict.fromkeys(found))


def check_positive(options: Namespace, *counts: str) -> None:
    """Refuse options below 1."""
    for name in counts:
        count = getattr(options, name)
        if count is not None and count < 1:
            raise UserError(f"`{name}` must be positive, got {count}")
