"""`cores reproduce`: every target's runs, tables and figures."""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cores import UserError
from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.options import (
    add_data_root,
    add_scheduler,
    certificates,
    check_positive,
    names,
    numbers,
)
from cores.config import RunConfig
from cores.config.models import MODELS, model_spec
from cores.data.catalogue import PAPER_DATASETS, canonical_name, data_folder
from cores.errors import ProgramError, failed, nearest
from cores.files import make_folder
from cores.runs.rows import Row, as_measured, run_row
from cores_paper.tables.rows import RUN_METRICS, merge_rows, with_keys
from cores_paper.tables.targets import (
    ABLATIONS,
    ARCHITECTURES,
    COMPARISONS,
    PICTURES,
    SPARSITY_REWARD,
    STATISTICS,
    TARGETS,
    TIMES,
    models_of,
    runs_of,
)

if TYPE_CHECKING:
    from cores.runs.runner import Outcome
    from cores_paper.tables.table import Table

ALL = "all"
QUICK_EPOCHS, QUICK_SPLITS = 20, 2
NOT_FOR_READING = "not for reading"
"""In the captions of what --quick makes: it shows that all works, not how well."""

Result = dict[str, Any]


def _parser() -> CommandParser:
    parser = CommandParser(
        "Make a table or figure of the paper, ours beside theirs: printed, and written to "
        "FOLDER/TARGET.md and .tex, or .png and .svg. Finished runs are not repeated: the same "
        "command continues after an interruption.",
        usage="cores reproduce TARGET [options]",
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="datasets (Table 1), architectures (Table 2), comparison-gin, comparison-gcn or "
        "comparison-gat (tables of models by datasets), ablation-d or ablation-lambda (figures 3 "
        "and 4), sparsity-reward (figure 2), pipeline and mutag (figures 1 and 5), time-train or "
        "time-inference (seconds of every model beside the plain GNN's), or all.",
    )
    parser.add_argument(
        "--datasets",
        metavar="NAMES",
        help="Names with commas (default: the paper's nine).",
    )
    parser.add_argument(
        "--models",
        metavar="NAMES",
        help=f"Names with commas (default: the target's own), of {', '.join(MODELS)}.",
    )
    parser.add_argument(
        "--splits",
        default="1-5",
        metavar="NUMBERS",
        help="For example 1-5 or 1,3 (default: 1-5).",
    )
    parser.add_argument(
        "--seeds",
        default="0",
        metavar="NUMBERS",
        help="For example 0 or 0-2 (default: 0).",
    )
    parser.add_argument(
        "--preset",
        metavar="NAME",
        default="default",
        help="Settings of the runs: one for all datasets, without edge features, the published "
        "ones (paper), or these in the schedule of the authors' program (default: default).",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"A small version: {QUICK_SPLITS} splits and {QUICK_EPOCHS} epochs.",
    )
    parser.add_count("--workers", "Processes on this machine (default: 1).", default=1)
    add_scheduler(
        parser,
        "Run on the workers of a dask scheduler, e.g. tls://head:8786, instead of processes "
        "here. They need this package, one thread each (dask worker --nthreads 1), and --out, the "
        "data and imported scripts under the same paths.",
    )
    parser.add_path(
        "--out",
        "FOLDER",
        "Folder of run folders, tables and figures (default: runs/reproduce).",
        default=Path("runs/reproduce"),
    )
    parser.add_path(
        "--rows",
        "CSV",
        "File that collects a row per finished run (default: FOLDER/TARGET.csv); a run that "
        "has a row there is not repeated.",
    )
    add_data_root(parser)
    return parser


def _reproduce(options: Namespace) -> Result:
    """Make a target, or all of them one after the other."""
    known = (*TARGETS, ALL)
    if options.target not in known:
        raise UserError(f"unknown target {options.target!r}; {nearest(options.target, known)}")
    check_positive(options, "workers")
    certificates(options)
    if options.rows and options.target == ALL:
        raise UserError("--rows names the file of one target; leave it out with all")
    if options.target != ALL:
        for option in _UNUSED.get(options.target, ()):
            if getattr(options, option) is not None:
                display.print_note(f"{options.target} has no use for --{option}")
        return _MAKERS[options.target](options, options.target)
    results, failures = [], {}
    for target in TARGETS:
        try:
            results.append(_MAKERS[target](options, target))
        except (ProgramError, UserError) as error:  # the rest is worth having
            failures[target] = error
            display.print_failure(target, str(error), options.flags)
    if failures:
        target, reason = next(iter(failures.items()))
        raise failed(
            f"{len(failures)} of {len(TARGETS)} targets failed, {target}: {reason}",
            ours=any(isinstance(error, ProgramError) for error in failures.values()),
        )
    return {"target": ALL, "targets": results}


def _runs(options: Namespace, target: str) -> Result:
    """Make a table or figure from rows of runs."""
    from cores.runs.runner import has_fault
    from cores_paper.tables.figures import ablation_figure
    from cores_paper.tables.tables import claims_of, tables_of, write_tables

    splits = numbers(options.splits, "--splits", first=1)
    configs = runs_of(
        target,
        _datasets(options),
        _models(options, target),
        splits[: QUICK_SPLITS if options.quick else None],
        options.preset,
        epochs=QUICK_EPOCHS if options.quick else None,
        seeds=numbers(options.seeds, "--seeds", first=0),
    )
    rows, failures = _measured(options, target, configs)
    mark = _quick_mark(options, f"{QUICK_EPOCHS} epochs")
    tables = _marked(tables_of(rows, target, options.preset), mark)
    claims = [f"{claim}{mark}" for claim in claims_of(rows, target)]
    stem = options.out / target
    files = write_tables(tables, claims, stem) if rows else []
    if rows and target in ABLATIONS:
        files += ablation_figure(rows, target, stem, note=mark.strip())
    measured = [as_measured(row, RUN_METRICS) for row in rows]
    result = _shown(options, target, tables if rows else {}, files, measured, claims)
    if failures:
        name, reason = next(iter(failures.items()))
        raise failed(
            f"{len(failures)} of {len(configs)} runs failed, the first {name}: {reason}",
            ours=any(has_fault(stem.parent / each) for each in failures),
        )
    return result


def _measured(
    options: Namespace, target: str, configs: Sequence[RunConfig]
) -> tuple[list[Row], dict[str, str]]:
    """Make the missing runs; return the rows of all, and why runs failed."""
    from cores.runs.device import choose_device

    root = options.out
    rows_file = options.rows if options.rows else root / f"{target}.csv"
    make_folder(rows_file.parent)
    make_folder(root)
    rows = merge_rows(rows_file, [])
    finished = {row["key"] for row in rows}  # here or on another machine
    missing = [config for config in configs if config.key not in finished]
    failures: dict[str, str] = {}
    if options.scheduler is None:  # what is wrong with all runs is told once, before the first
        choose_device(options.device)
        data_folder(options.data_root)
    with display.runs_progress(len(missing), options.flags) as advance:

        def done(outcome: "Outcome") -> None:
            failure = outcome.failure
            if failure is None and (row := run_row(outcome.folder, RUN_METRICS)) is not None:
                rows[:] = merge_rows(rows_file, [row])
            elif failure is None:
                failure = f"it ended, but not in {root} as seen from here; workers must share `out`"
            if failure is not None:
                failures[outcome.folder.name] = failure
            advance(outcome.folder.name, failure)

        _run_all(options, missing, done)
    return with_keys(rows, configs), failures


def _run_all(
    options: Namespace, configs: Sequence[RunConfig], done: Callable[["Outcome"], None]
) -> None:
    from cores.runs.runner import run_all

    run_all(
        configs,
        options.out,
        workers=options.workers,
        scheduler=options.scheduler,
        certificates=certificates(options),
        device=options.device,
        data_root=options.data_root,
        done=done,
        waits=lambda runs: display.print_note(
            f"the last {runs} runs are locked by another process; waiting for them"
        ),
    )


def _statistics(options: Namespace, target: str) -> Result:
    """Make Table 1 from the data."""
    from cores import load_dataset
    from cores.data.dataset import statistics
    from cores_paper.tables.tables import statistics_table, write_tables

    rows = [statistics(load_dataset(name, options.data_root)) for name in _datasets(options)]
    caption = "Statistics of the datasets, the paper's in brackets where they are others"
    tables = {caption: statistics_table(rows)}
    make_folder(options.out)
    files = write_tables(tables, [], options.out / target)
    return _shown(options, target, tables, files, rows)


def _sparsity_reward(options: Namespace, target: str) -> Result:
    """Draw the curves of R_s."""
    from cores_paper.tables.figures import sparsity_reward_figure

    make_folder(options.out)
    return _shown(options, target, {}, sparsity_reward_figure(options.out / target), [])


def _picture(options: Namespace, target: str) -> Result:
    """Draw graphs, what is kept of them, and what is predicted from that."""
    from cores.explain.run import explain_test_graphs
    from cores.runs.runner import run_folder
    from cores_paper.tables.figures import draw_pipeline

    picture = PICTURES[target]
    models = _models(options, target)
    epochs = QUICK_EPOCHS if options.quick else None
    preset = options.preset if picture.dataset in PAPER_DATASETS else "default"
    splits = numbers(options.splits, "--splits", first=1)
    seeds = numbers(options.seeds, "--seeds", first=0)
    configs = runs_of(
        target, [picture.dataset], models[:1], splits[:1], preset, epochs, seeds=seeds[:1]
    )
    folder = run_folder(options.out, configs[0])
    if run_row(folder, RUN_METRICS) is None:
        with display.runs_progress(1, options.flags) as advance:
            _run_all(options, configs, lambda outcome: advance(target, outcome.failure))
    row = run_row(folder, RUN_METRICS)
    if row is None:
        raise UserError(f"the run behind {target} failed; see the line above")
    explanations, class_names = explain_test_graphs(folder, 1000, data_root=options.data_root)
    files = draw_pipeline(
        explanations,
        picture.classes or class_names,
        picture.symbols,
        options.out / target,
        note=_quick_mark(options, f"{QUICK_EPOCHS} epochs").strip(),
    )
    return _shown(options, target, {}, files, [as_measured(row, RUN_METRICS)])


def _times(options: Namespace, target: str) -> Result:
    """Time models one after the other in this process: beside each other they would disturb."""
    from cores.runs.device import choose_device
    from cores.runs.folder import machine_of
    from cores_paper.tables.tables import write_tables
    from cores_paper.tables.targets import PLAIN_GNN
    from cores_paper.tables.timing import time_models
    from cores_paper.tables.timing_rows import REPEATS, merge_timings, timing_table

    if options.preset != "default" and options.target != ALL:
        raise UserError(f"{target} is measured at the default settings; leave --preset out")
    action, datasets = TIMES[target], _datasets(options)
    models = _models(options, target)
    device = choose_device(options.device)
    rows_file = options.rows or options.out / f"{target}.csv"
    make_folder(rows_file.parent)
    make_folder(options.out)
    timings = merge_timings(rows_file, [])
    asked = {PLAIN_GNN, *models}
    repeats = 1 if options.quick else REPEATS[action]
    setting = (action, repeats, machine_of(device))
    with display.runs_progress(len(datasets), options.flags) as advance:
        for dataset in datasets:
            done = {
                each.model
                for each in timings
                if each.dataset == dataset and (each.action, each.repeats, each.machine) == setting
            }
            if not asked <= done:
                new = time_models(
                    action,
                    dataset,
                    models,
                    repeats=repeats,
                    data_root=options.data_root,
                    device=device,
                )
                timings = merge_timings(rows_file, new)
            advance(dataset, None)
    asked_for = [
        timing
        for timing in timings
        if timing.dataset in datasets and (timing.action, timing.repeats, timing.machine) == setting
    ]
    tables = _marked(
        {"Times, as ratios to the plain GNN's": timing_table(asked_for, action)},
        _quick_mark(options, "1 repeat"),
    )
    files = write_tables(tables, [], options.out / target)
    return _shown(options, target, tables, files, [asdict(timing) for timing in asked_for])


_MAKERS: dict[str, Callable[[Namespace, str], Result]] = {
    STATISTICS: _statistics,
    ARCHITECTURES: _runs,
    **dict.fromkeys(COMPARISONS, _runs),
    **dict.fromkeys(ABLATIONS, _runs),
    SPARSITY_REWARD: _sparsity_reward,
    **dict.fromkeys(PICTURES, _picture),
    **dict.fromkeys(TIMES, _times),
}
_UNUSED = {
    STATISTICS: ("models", "rows"),
    SPARSITY_REWARD: ("datasets", "models", "rows"),
    **dict.fromkeys(PICTURES, ("datasets", "rows")),
}
"""Options that a target does not read; using one prints a note."""


def _quick_mark(options: Namespace, what: str) -> str:
    """Return the end of the caption of a table or figure that --quick made."""
    return f" (quick: {what}, {NOT_FOR_READING})" if options.quick else ""


def _marked(tables: Mapping[str, "Table"], mark: str) -> dict[str, "Table"]:
    return {f"{caption}{mark}": table for caption, table in tables.items()}


def _shown(
    options: Namespace,
    target: str,
    tables: Mapping[str, "Table"],
    files: Sequence[Path],
    rows: Sequence[Any],
    claims: Sequence[str] = (),
) -> Result:
    """Print what a target came to, unless as JSON, and return it."""
    written = [str(each) for each in files]
    if not options.json:
        for caption, table in tables.items():
            display.print_table(caption, table.markdown())
        display.print_lines([*claims, *written])
    return {"target": target, "rows": list(rows), "claims": list(claims), "files": written}


def _datasets(options: Namespace) -> list[str]:
    asked = PAPER_DATASETS if options.datasets is None else names(options.datasets, "--datasets")
    return [canonical_name(name) for name in asked]


def _models(options: Namespace, target: str) -> list[str]:
    if options.models is None:
        return list(models_of(target, options.preset))
    models = names(options.models, "--models")
    plain = [name for name in models if not model_spec(name).has_policy]
    if options.target == ALL and target in {*ABLATIONS, *PICTURES} and len(plain) < len(models):
        return [name for name in models if name not in plain]
    if plain and target in {*ABLATIONS, *PICTURES}:
        raise UserError(
            f"{target} needs models with a policy, got {plain[0]}; "
            "leave --models out, or give cores-node"
        )
    return models


REPRODUCE = Command(
    "reproduce",
    "a table or figure of the paper, ours beside theirs",
    _parser,
    _reproduce,
    after_interrupt="the same command continues",
)
