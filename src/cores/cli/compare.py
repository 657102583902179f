"""`cores compare`: several models on one dataset."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from cores.cli import display
from cores.cli.command import Command, CommandParser, add_data_root, add_import
from cores.cli.inputs import add_columns, own_file
from cores.cli.settings import BRIEF, settings_file
from cores.cli.values import check_workers, named_path, names, numbers, path_or_none
from cores.config import merged
from cores.config.models import CONVS, MODELS, model_spec
from cores.data.catalogue import canonical_name
from cores.errors import failed
from cores.runs.rows import Row


def _parser() -> CommandParser:
    parser = CommandParser(
        "Train several models on the same splits of one dataset and print one table: accuracy, "
        "balanced accuracy, kept ratio, an independent classifier (the judge) on the kept "
        "subgraphs and on random ones as small, in percent, and seconds of training. A picture "
        "shows accuracy over kept share. Finished runs are not repeated: the same command "
        "continues after an interruption.",
        usage="cores compare --dataset NAME [options]",
    )
    parser.add_argument(
        "--dataset",
        type=str,
        required=True,
        metavar="NAME",
        help=f"{BRIEF['dataset']}.",
    )
    parser.add_argument(
        "--models",
        type=str,
        default="gnn,cores-node,cores-edge",
        metavar="NAMES",
        help=f"Names with commas (default: gnn,cores-node,cores-edge), of {', '.join(MODELS)}.",
    )
    parser.add_argument(
        "--conv",
        type=str,
        default="gin",
        metavar="NAME",
        help=f"Message-passing layer: {', '.join(CONVS)} (default: gin).",
    )
    parser.add_argument(
        "--splits",
        type=str,
        default="1-3",
        metavar="NUMBERS",
        help="For example 1-5 or 1,3 (default: 1-3).",
    )
    parser.add_argument(
        "--epochs",
        type=int,
        default=None,
        metavar="N",
        help="Most epochs (default: 240; for own data, by size).",
    )
    parser.add_argument(
        "--settings",
        type=str,
        default=None,
        metavar="FILE",
        help="Settings of all models from a TOML, YAML or JSON file.",
    )
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="Processes (default: 1)."
    )
    parser.add_argument(
        "--out",
        type=named_path,
        default=None,
        metavar="FOLDER",
        help="Folder of the run folders and of the picture, comparison.png (default: "
        "runs/compare-DATASET).",
    )
    add_columns(parser, split=True)
    add_data_root(parser)
    add_import(parser)
    return parser


def _compare(options: Namespace) -> dict[str, Any]:
    from cores.data.datasets import load_dataset
    from cores.runs.compare import COLUMNS, LEGEND, compare, comparison_lines
    from cores.runs.device import choose_device
    from cores.runs.rows import as_measured
    from cores.runs.runner import has_fault

    check_workers(options.workers)
    models = names(options.models, "--models")
    for name in models:
        model_spec(name)
    splits = numbers(options.splits, "--splits", first=1)
    settings: dict[str, Any] = {}
    if options.settings is not None:
        settings = settings_file(Path(options.settings))
    if options.epochs is not None:
        settings = merged(settings, {"training": {"epochs": options.epochs}})
    dataset = canonical_name(options.dataset)
    out = Path(options.out or f"runs/compare-{Path(dataset).stem}")
    choose_device(options.device)  # what is wrong with all runs is told once, before the first
    own = own_file(dataset, options)
    if own is None:
        load_dataset(dataset, options.data_root)
    else:
        settings = merged(own.settings, settings)
        own.note_unusable()
    failures: dict[Path, str] = {}
    with display.runs_progress(len(models) * len(splits), options.flags) as advance:

        def done(outcome: Any) -> None:
            if outcome.failure is not None:
                failures[outcome.folder] = outcome.failure
            advance(outcome.folder.name, outcome.failure)

        rows = compare(
            dataset,
            models,
            out,
            conv=options.conv,
            splits=splits,
            settings=settings,
            workers=options.workers,
            device=options.device,
            data_root=path_or_none(options.data_root),
            columns=None if own is None else own.named,
            done=done,
        )
    title = f"{Path(dataset).name} ({CONVS[options.conv].title})"
    pictures = [str(path) for path in _pictures(rows, title, out)]
    if rows and not options.json:
        caption = f"{title}, percent, mean ± deviation over the splits"
        display.print_columns(caption, COLUMNS, comparison_lines(rows))
        display.print_lines([*LEGEND, f"Picture: {pictures[0]}"])
    if failures:
        folder, reason = next(iter(failures.items()))
        raise failed(
            f"{len(failures)} runs failed, the first {folder.name}: {reason}",
            ours=any(has_fault(path) for path in failures),
        )
    return {
        "dataset": dataset,
        "rows": [as_measured(row) for row in rows],
        "pictures": pictures,
    }


def _pictures(rows: Sequence[Row], title: str, out: Path) -> list[Path]:
    """Draw what has been measured, into the folder of the runs."""
    if not rows:
        return []
    from cores.explain.tradeoff import tradeoff_figure

    return tradeoff_figure(rows, title, out / "comparison")


COMPARE = Command(
    "compare",
    "several models on one dataset",
    _parser,
    _compare,
    after_interrupt="the same command continues",
    takes_scripts=True,
)
