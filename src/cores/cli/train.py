"""`cores train`: one run folder."""

from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from cores.cli import display
from cores.cli.command import Command, CommandParser, add_data_root, add_import
from cores.cli.settings import add_settings, run_config
from cores.cli.values import path_or_none
from cores.config import RunConfig
from cores.errors import UserError


def _parser() -> CommandParser:
    parser = CommandParser(
        "Train a model into a run folder. Settings come from the preset; --settings changes them, "
        "and options change both.",
        usage="cores train [options]",
    )
    parser.add_argument(
        "--out",
        type=str,
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
        help="Draw the subgraphs of N test graphs to subgraphs.png in the run folder.",
    )
    parser.add_argument(
        "--folds",
        type=int,
        default=0,
        metavar="K",
        help="Cross-validate: K runs, in RUN/fold1 and so on; finished ones are kept.",
    )
    add_data_root(parser)
    add_import(parser)
    add_settings(parser)
    return parser


def _train(options: Namespace) -> dict[str, Any]:
    config, out = run_config(options), options.out
    if not 0 <= options.pictures <= 100:
        raise UserError(f"--pictures must lie in [0, 100], got {options.pictures}")
    if options.folds:
        return _train_folds(options, config)
    folder = Path(out) if out else _default_folder(config)
    from cores.runs.progress import training_progress
    from cores.runs.run import train_run

    title = f"{config.model} on {config.dataset}"
    with training_progress(title, config.training.epochs) as report:
        metrics = train_run(
            config,
            folder,
            data_root=path_or_none(options.data_root),
            device=options.device,
            resume=options.resume,
            report=report,
        )
    if options.pictures:
        from cores.explain.pictures import draw_subgraphs
        from cores.explain.run import explain_test_graphs

        explained = explain_test_graphs(
            folder, options.pictures, data_root=path_or_none(options.data_root)
        )
        draw_subgraphs(*explained, folder / "subgraphs.png")
    if not options.json:
        display.print_metrics(metrics, str(folder))
    return metrics


def _train_folds(options: Namespace, config: RunConfig) -> dict[str, Any]:
    from cores.runs.folds import folds_table, train_folds
    from cores.runs.progress import training_progress

    if options.pictures:
        raise UserError("--pictures is for one run; leave it out with --folds")
    folder = Path(options.out) if options.out else _default_folder(config, options.folds)
    title = f"{config.model} on {config.dataset}, {options.folds} folds"
    with training_progress(title, options.folds * config.training.epochs) as report:
        found = train_folds(
            config,
            options.folds,
            folder,
            data_root=path_or_none(options.data_root),
            device=options.device,
            report=report,
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
)
