"""What each command does; every function returns what ``--json`` prints."""

import tomllib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from jsonargparse import Namespace

from cores.cli import display
from cores.cli.parser import SHORT
from cores.config import Model, RunConfig, from_dict, merged
from cores.errors import UserError, nearest
from cores.files import make_folder


def datasets(options: Namespace) -> dict[str, Any]:
    """Statistics of datasets."""
    from cores.data.datasets import canonical_name, load_dataset
    from cores.data.statistics import statistics
    from cores.settings import PAPER_DATASETS

    names = [canonical_name(name) for name in options.names or PAPER_DATASETS]
    rows = [statistics(load_dataset(name, options.data_root)) for name in names]
    if not options.json:
        display.print_datasets(rows)
    return {"datasets": rows}


def train(options: Namespace) -> dict[str, Any]:
    """Train one run."""
    config, out = _run_config(options), options.out
    if not 0 <= options.pictures <= 100:
        raise UserError(f"--pictures must lie in [0, 100], got {options.pictures}")
    folder = Path(out) if out else _default_folder(config)
    from cores.experiments.run import train_run

    with display.training_progress(config) as report:
        metrics = train_run(
            config,
            folder,
            data_root=_path(options.data_root),
            device=options.device,
            resume=options.resume,
            report=report,
        )
    if options.pictures:
        from cores.experiments.run import predict_test_graphs
        from cores.reports.pictures import draw_subgraphs

        shown = predict_test_graphs(folder, options.pictures, data_root=_path(options.data_root))
        draw_subgraphs(*shown, folder / "subgraphs.png")
    if not options.json:
        display.print_metrics(metrics, str(folder))
    return metrics


def evaluate(options: Namespace) -> dict[str, Any]:
    """Measure one run again."""
    from cores.experiments.run import evaluate_run

    metrics = evaluate_run(
        Path(options.run),
        dataset=options.dataset,
        data_root=_path(options.data_root),
        device=options.device,
        alpha=options.alpha,
    )
    if not options.json:
        display.print_metrics(metrics, options.run)
    return metrics


def search(options: Namespace) -> dict[str, Any]:
    """Search for settings."""
    from cores.experiments import search as searching

    if options.trials < 1:
        raise UserError(f"--trials must be positive, got {options.trials}")
    _check_workers(options)
    base = _run_config(options)
    dataset = Path(base.dataset).stem
    folder = Path(options.out or f"runs/search-{dataset}-{base.model}-{base.conv}")
    with display.runs_progress(options.trials, "trials") as advance:
        tried = searching.search(
            base,
            folder,
            trials=options.trials,
            sampler=options.sampler,
            workers=options.workers,
            device=options.device,
            data_root=_path(options.data_root),
            done=lambda each: advance(f"trial {each.number}", each.failure),
        )
    settings = str(folder / searching.SETTINGS)
    if not options.json:
        display.print_trials(tried, settings)
    return {"settings": settings, "trials": [asdict(each) for each in tried]}


def _check_workers(options: Namespace) -> None:
    if options.workers < 1:
        raise UserError(f"--workers must be positive, got {options.workers}")


def reproduce(options: Namespace) -> dict[str, Any]:
    """Run a table of the paper."""
    from cores.data.datasets import canonical_name
    from cores.experiments.paper import ABLATIONS, COMPARISONS, TARGETS, TIMES, runs_of
    from cores.experiments.results import merge_rows, run_row, with_keys
    from cores.experiments.runner import Outcome, run_all
    from cores.reports.comparison import comparison_tables
    from cores.reports.tables import tables_of
    from cores.settings import PAPER_DATASETS

    if options.target not in TARGETS:
        raise UserError(f"unknown target {options.target!r}; {nearest(options.target, TARGETS)}")
    names = list(PAPER_DATASETS) if options.datasets is None else _names(options.datasets)
    models = _names(options.models)
    if options.target in ABLATIONS and (
        plain := [name for name in models if not name.startswith("cores")]
    ):
        raise UserError(
            f"{options.target} needs models with a reward, got {plain[0]}; "
            "add --models cores-node,cores-edge"
        )
    known = get_args(Model)
    if unknown := [name for name in models if name not in known]:
        raise UserError(f"unknown model {unknown[0]!r}; {nearest(unknown[0], known)}")
    _check_workers(options)
    names = [canonical_name(name) for name in names]
    if options.target in TIMES:
        return _reproduce_times(options, names, models)
    configs = runs_of(
        options.target,
        names,
        models,
        _numbers(options.splits)[: 2 if options.quick else None],
        options.preset,
        epochs=20 if options.quick else None,
    )
    root = Path(options.out)
    rows_file = Path(options.rows) if options.rows else root / f"{options.target}.csv"
    make_folder(rows_file.parent)
    rows = merge_rows(rows_file, [])
    make_folder(root)
    finished = {row["key"] for row in rows}  # here or on another machine
    missing = [config for config in configs if config.key not in finished]
    failures: dict[str, str] = {}
    with display.runs_progress(len(missing)) as advance:

        def done(outcome: Outcome) -> None:
            if outcome.failure is None and (row := run_row(outcome.folder)) is not None:
                rows[:] = merge_rows(rows_file, [row])
            elif outcome.failure is not None:
                failures[outcome.folder.name] = outcome.failure
            advance(outcome.folder.name, outcome.failure)

        run_all(
            missing,
            root,
            workers=options.workers,
            scheduler=options.scheduler,
            device=options.device,
            data_root=_path(options.data_root),
            done=done,
        )
    asked = with_keys(rows, configs)
    if not options.json:
        tables = tables_of(asked, options.target, options.preset)
        if options.target in COMPARISONS and len(models) > 1:
            tables += comparison_tables(asked, COMPARISONS[options.target])
        for table in tables:
            display.print_markdown(table)
    if failures:
        name, reason = next(iter(failures.items()))
        raise UserError(
            f"{len(failures)} of {len(missing)} runs failed, the first {name}: {reason}"
        )
    return {"target": options.target, "rows": asked}


def _reproduce_times(
    options: Namespace, datasets: Sequence[str], models: Sequence[str]
) -> dict[str, Any]:
    """Time models one after the other in this process: beside each other they would disturb."""
    from cores.experiments.device import choose_device
    from cores.experiments.folder import machine_of
    from cores.experiments.paper import TIMES
    from cores.experiments.times import merge_timings
    from cores.experiments.timing import YARDSTICK, time_models
    from cores.reports.times import times

    action = TIMES[options.target]
    device = choose_device(options.device)
    rows_file = Path(options.rows or Path(options.out) / f"{options.target}.csv")
    make_folder(rows_file.parent)
    timings = merge_timings(rows_file, [])
    asked = {YARDSTICK, *models}
    repeats = 1 if options.quick else 5
    with display.runs_progress(len(datasets)) as advance:
        for dataset in datasets:
            wanted = (action, dataset, repeats, machine_of(device))
            done = {
                each.model
                for each in timings
                if (each.action, each.dataset, each.repeats, each.machine) == wanted
            }
            if not asked <= done:
                new = time_models(
                    action,
                    dataset,
                    models,
                    repeats=repeats,
                    data_root=_path(options.data_root),
                    device=device,
                )
                timings = merge_timings(rows_file, new)
            advance(dataset, None)
    mine = [each for each in timings if each.dataset in datasets and each.action == action]
    if not options.json:
        display.print_markdown(times(mine, action))
    return {"target": options.target, "rows": [asdict(each) for each in mine]}


def benchmark(options: Namespace) -> dict[str, Any]:
    """Measure the speed ratios."""
    from cores.experiments.benchmark import benchmark as measure

    if options.device == "cuda":
        raise UserError("the ratios are defined on one CPU thread; leave --device cuda out")
    figures = measure(options.repeats)
    if not options.json:
        display.print_benchmark(figures)
    return figures


def _path(given: str | None) -> Path | None:
    return None if given is None else Path(given)


def _names(text: str) -> list[str]:
    """Names from a list with commas.

    >>> _names("MUTAG, PTC,")
    ['MUTAG', 'PTC']
    """
    return [name for part in text.split(",") if (name := part.strip())]


def _numbers(text: str) -> list[int]:
    """Split numbers from a list with commas and ranges.

    >>> _numbers("1-3,7")
    [1, 2, 3, 7]
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            part_numbers = range(int(first), int(last or first) + 1)
        except ValueError:
            part_numbers = range(0)
        if not 1 <= len(part_numbers) <= 1000 or part_numbers[0] < 1:
            raise UserError(f"--splits takes numbers from 1 such as 1-5 or 1,3, got {text!r}")
        numbers.extend(part_numbers)
    return numbers


def _run_config(options: Namespace) -> RunConfig:
    """Preset, then settings file, then options."""
    from cores.data.datasets import canonical_name
    from cores.settings import preset_config

    given = options.given.as_dict()
    changes = {name: value for name, value in given.items() if name in RunConfig.__annotations__}
    for name, (path, _) in SHORT.items():
        if options[name] is not None:
            group, setting = path.split(".")
            changes = merged(changes, {group: {setting: options[name]}})
    if options.settings is not None:
        changes = merged(_settings(Path(options.settings)), changes)
    choice = from_dict(
        RunConfig,
        {name: changes[name] for name in ("dataset", "model", "conv", "preset") if name in changes},
    )
    changes["dataset"] = canonical_name(choice.dataset)
    return preset_config(changes["dataset"], choice.model, choice.conv, choice.preset, changes)


def _settings(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            settings = tomllib.load(file)
        from_dict(RunConfig, settings)  # what is wrong is told even where an option overrides it
    except OSError as error:
        raise UserError(f"cannot read --settings {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"--settings {path} is not valid TOML: {error}") from None
    return settings


def _default_folder(config: RunConfig) -> Path:
    dataset = Path(config.dataset).stem
    return Path("runs") / (
        f"{dataset}-{config.model}-{config.conv}-split{config.split}-seed{config.seed}"
    )
