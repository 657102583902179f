"""`cores train`: one run folder."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import Namespace

from cores import ranks
from cores.cli import display
from cores.cli.command import Command, CommandParser, add_data_root, add_import
from cores.cli.inputs import OwnFile, add_columns, own_file
from cores.cli.settings import add_settings, run_config
from cores.cli.values import check_workers, named_path, path_or_none
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
    parser.add_argument(
        "--out",
        type=named_path,
        default=None,
        metavar="RUN",
        help="Run folder (default: runs/DATASET-MODEL-CONV-splitN-seedS).",
    )
    parser.add_argument(
        "--resume", action="store_true", help="Continue an interrupted run, or start it."
    )
    parser.add_argument(
        "--pictures",
        type=int,
        default=0,
        metavar="N",
        help="Draw the subgraphs of N test graphs (subgraphs.png).",
    )
    parser.add_argument(
        "--folds",
        type=int,
        default=0,
        metavar="K",
        help="Cross-validate: K runs, in RUN/fold1 and so on.",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="Processes for the folds (default: 1).",
    )
    add_columns(parser, split=True)
    add_data_root(parser)
    add_import(parser)
    add_settings(parser)
    return parser


def _train(options: Namespace) -> dict[str, Any]:
    config, own = _configured(options)
    if not 0 <= options.pictures <= 100:
        raise UserError(f"--pictures must lie in [0, 100], got {options.pictures}")
    check_workers(options.workers)
    if options.folds:
        return _train_folds(options, config, own)
    if options.workers > 1:
        raise UserError("--workers is for --folds; one run has one process")
    folder = Path(options.out) if options.out else _default_folder(config)
    if own is not None:
        from cores.data.dataset import need_classes
        from cores.data.splits import split_dataset
        from cores.runs.folder import is_finished

        # A mistake is told alone, without the note.
        if _writes():
            is_finished(folder, config, options.resume, asdict(own.columns))
        split_dataset(own.dataset, config.split, config.parts)
        if options.pictures:
            need_classes(own.dataset, "`pictures`")
        _note_data(own, config)
    metrics = _train_one(options, config, folder, own)
    if options.pictures and _writes():
        from cores.explain.explanation import draw_subgraphs
        from cores.explain.run import explain_test_graphs

        explained = explain_test_graphs(
            folder, options.pictures, data_root=path_or_none(options.data_root)
        )
        draw_subgraphs(*explained, folder / "subgraphs.png")
    if not options.json:
        display.print_metrics(metrics, str(folder), options.flags)
    return metrics


def _configured(options: Namespace) -> tuple[RunConfig, OwnFile | None]:
    """The settings of a run; for a file of the user's, with defaults by its size."""
    config = run_config(options)
    own = own_file(config.dataset, options, config.task, config.network.reach)
    return (config if own is None else run_config(options, own.settings)), own


def _train_one(
    options: Namespace, config: RunConfig, folder: Path, own: OwnFile | None
) -> dict[str, Any]:
    from cores.runs.device import choose_device
    from cores.runs.progress import training_progress
    from cores.runs.run import train_run

    title = f"{config.model} on {config.dataset}"
    with (
        ranks.joined(choose_device(options.device)),
        training_progress(title, _phases(config, own)) as reports,
    ):
        return train_run(
            config,
            folder,
            data_root=path_or_none(options.data_root),
            columns=None if own is None else own.columns,
            dataset=None if own is None else own.dataset,
            device=options.device,
            resume=options.resume,
            report=reports.training,
            judge_report=reports.judge,
        )


def _writes() -> bool:
    """Whether this process is alone, or the first of those that torchrun started."""
    here = ranks.launch()
    return here is None or here.rank == 0


def _note_data(own: OwnFile, config: RunConfig) -> None:
    """Say what was read: sizes, features, and the rows that could not be used."""
    dataset = own.dataset
    edges = f"and {dataset.num_edge_features} edge features are read"
    if dataset.num_edge_features and not config.network.edge_features:
        edges = f"features are read, {dataset.num_edge_features} edge features are not"
    display.print_note(
        f"{len(dataset):,} graphs with {dataset.label_summary}; {dataset.num_features} node {edges}"
    )
    own.note_unusable()


def _phases(config: RunConfig, own: OwnFile | None) -> "list[Phase]":
    """What a run consists of; how many graphs there are is known of a file that was read."""
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
    folder = Path(options.out) if options.out else _default_folder(config, options.folds)
    title = f"{config.model} on {config.dataset}, {options.folds} folds"
    train = partial(
        train_folds,
        config,
        options.folds,
        folder,
        data_root=path_or_none(options.data_root),
        columns=None if own is None else own.columns,
        dataset=None if own is None else own.dataset,
        device=options.device,
    )
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
        display.print_table(f"{title}, in percent", folds_table(found).markdown())
        display.print_lines([f"Run folders: {folder}"])
    return found


def _default_folder(config: RunConfig, folds: int = 0) -> Path:
    dataset = Path(config.dataset).stem
    division = f"{folds}folds" if folds else f"split{config.split}"
    return Path("runs") / f"{dataset}-{config.model}-{config.conv}-{division}-seed{config.seed}"


TRAIN = Command(
    "train",
    "train a model",
    _parser,
    _train,
    after_interrupt="the same command with --resume continues",
    takes_scripts=True,
    takes_ranks=True,
)
