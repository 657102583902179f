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
    add_data_root(parser)
    add_import(parser)
    add_settings(parser)
    return parser


def _train(options: Namespace) -> dict[str, Any]:
    config, out = run_config(options), options.out
    if not 0 <= options.pictures <= 100:
        raise UserError(f"--pictures must lie in [0, 100], got {options.pictures}")
    folder = Path(out) if out else _default_folder(config)
    from cores.runs.progress import phases_of, training_progress
    from cores.runs.run import train_run

    title = f"{config.model} on {config.dataset}"
    with training_progress(title, phases_of(config)) as reports:
        metrics = train_run(
            config,
            folder,
            data_root=path_or_none(options.data_root),
            device=options.device,
            resume=options.resume,
            report=reports.training,
            judge_report=reports.judge,
        )
    if options.pictures:
        from cores.explain.pictures import draw_subgraphs
        from cores.explain.run import explain_test_graphs

        explained = explain_test_graphs(
            folder, options.pictures, data_root=path_or_none(options.data_root)
        )
        draw_subgraphs(*explained, folder / "subgraphs.png")
    if not options.json:
        display.print_metrics(metrics, str(folder), options.flags)
    return metrics


def _default_folder(config: RunConfig) -> Path:
    dataset = Path(config.dataset).stem
    return Path("runs") / (
        f"{dataset}-{config.model}-{config.conv}-split{config.split}-seed{config.seed}"
    )


TRAIN = Command(
    "train",
    "train a model",
    _parser,
    _train,
    after_interrupt="the same command with --resume continues",
    takes_scripts=True,
)
