"""`cores train`: one run folder."""

from argparse import Namespace
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cores import ranks
from cores.cli import display, is_first
from cores.cli.command import Command, CommandParser
from cores.cli.options import OwnFile, add_columns, add_data_root, check_positive
from cores.cli.settings import add_settings, asked_run
from cores.config import RunConfig
from cores.errors import UserError

if TYPE_CHECKING:
    from cores.runs.progress import Phase


def _parser() -> CommandParser:
    parser = CommandParser(
        "Train a model into a run folder. Settings come from the preset; --settings changes them, "
        "and options change both.",
        usage="cores train [options]",
    )
    parser.add_path("--out", "RUN", "Run folder (default: runs/DATASET-MODEL-CONV-splitN-seedS).")
    parser.add_argument(
        "--resume", action="store_true", help="Continue an interrupted run, or start it."
    )
    parser.add_count("--pictures", "Draw the subgraphs of N test graphs (subgraphs.png).", 0)
    parser.add_argument(
        "--folds",
        type=int,
        default=0,
        metavar="K",
        help="Cross-validate: K runs, in RUN/fold1 and so on.",
    )
    parser.add_count("--workers", "Processes for the folds (default: 1).", default=1)
    add_columns(parser, split=True)
    add_data_root(parser)
    add_settings(parser)
    return parser


def _train(options: Namespace) -> dict[str, Any]:
    from cores.runs.device import choose_device
    from cores.runs.progress import training_progress
    from cores.runs.run import train_run

    config, own = asked_run(options)
    if not 0 <= options.pictures <= 100:
        raise UserError(f"--pictures must lie in [0, 100], got {options.pictures}")
    check_positive(options, "workers")
    if options.folds:
        return _train_folds(options, config, own)
    if options.workers > 1:
        raise UserError("--workers is for --folds; one run has one process")
    folder = options.out or _default_folder(config, f"split{config.split}")
    if own is not None:
        _check_own(options, config, own, folder)
        _note_data(own, config)
    title = f"{config.model} on {config.dataset}"
    with (
        ranks.joined(choose_device(options.device)),
        training_progress(title, _phases(config, own)) as reports,
    ):
        metrics = train_run(
            config,
            folder,
            **_data(options, own),
            resume=options.resume,
            report=reports.training,
            judge_report=reports.judge,
        )
    if options.pictures and is_first():
        from cores.explain.run import draw_subgraphs, explain_test_graphs

        explained = explain_test_graphs(folder, options.pictures, data_root=options.data_root)
        draw_subgraphs(*explained, folder / "subgraphs.png")
    if not options.json:
        display.print_metrics(metrics, str(folder), options.flags)
    return metrics


def _data(options: Namespace, own: OwnFile | None) -> dict[str, Any]:
    """Collect the data and the device, as the library takes them."""
    return {
        "data_root": options.data_root,
        "columns": None if own is None else own.columns,
        "dataset": None if own is None else own.dataset,
        "device": options.device,
    }


def _check_own(options: Namespace, config: RunConfig, own: OwnFile, folder: Path) -> None:
    """Find mistakes before the note on the data, so that they are told alone."""
    from cores.data.dataset import need_classes
    from cores.data.splits import split_dataset
    from cores.runs.folder import is_finished

    if is_first():
        is_finished(folder, config, options.resume, asdict(own.columns))
    split_dataset(own.dataset, config.split, config.parts)
    if options.pictures:
        need_classes(own.dataset, "`pictures`")


def _note_data(own: OwnFile, config: RunConfig) -> None:
    """Remark on the data: sizes, features, and the rows that could not be used."""
    dataset = own.dataset
    edges = f"and {dataset.num_edge_features} edge features are read"
    if dataset.num_edge_features and not config.network.edge_features:
        edges = f"features are read, {dataset.num_edge_features} edge features are not"
    display.print_note(
        f"{len(dataset):,} graphs with {dataset.label_summary}; {dataset.num_features} node {edges}"
    )
    own.note_unusable()


def _phases(config: RunConfig, own: OwnFile | None) -> "list[Phase]":
    """List the phases of a run; the number of graphs is known of a file that was read."""
    from cores.runs.progress import phases_of

    return phases_of(config) if own is None else phases_of(config, num_graphs=len(own.dataset))


def _train_folds(options: Namespace, config: RunConfig, own: OwnFile | None) -> dict[str, Any]:
    from cores.runs.device import choose_device
    from cores.runs.folds import folds_table, train_folds
    from cores.runs.progress import training_progress

    if options.pictures:
        raise UserError("--pictures is for one run; leave it out with --folds")
    if "split" in options:
        raise UserError("--folds takes every split in turn; leave --split out")
    if own is not None:
        _note_data(own, config)
    folder = options.out or _default_folder(config, f"{options.folds}folds")
    title = f"{config.model} on {config.dataset}, {options.folds} folds"
    train = partial(train_folds, config, options.folds, folder, **_data(options, own))
    if options.workers > 1:
        if ranks.launch() is not None:
            raise UserError("--workers starts processes of its own; leave torchrun out")
        with display.runs_progress(options.folds, options.flags, "folds") as advance:
            found = train(
                workers=options.workers,
                done=lambda outcome: advance(outcome.folder.name, outcome.failure),
            )
    else:
        with ranks.joined(choose_device(options.device)):
            found = train(
                progress=lambda fold: training_progress(
                    f"{title}: fold {fold.split}", _phases(fold, own)
                )
            )
    if not options.json:
        display.print_table(f"{title}, in percent", folds_table(found))
        display.print_lines([f"Run folders: {folder}"])
    return found


def _default_folder(config: RunConfig, division: str) -> Path:
    dataset = Path(config.dataset).stem
    return Path("runs") / f"{dataset}-{config.model}-{config.conv}-{division}-seed{config.seed}"


TRAIN = Command(
    "train",
    "train a model",
    _parser,
    _train,
    after_interrupt="the same command with --resume continues",
    takes_ranks=True,
)
