"""What each command does; every function returns what ``--json`` prints."""

import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from cores.cli import display
from cores.cli.parser import SHORT
from cores.cli.values import check_workers, path_or_none
from cores.config import RunConfig, merged
from cores.data.catalogue import canonical_name
from cores.errors import UserError

CHOICE = ("dataset", "model", "conv", "preset")


def datasets(options: Namespace) -> dict[str, Any]:
    """Statistics of datasets."""
    from cores.config.presets import PAPER_DATASETS
    from cores.data.datasets import load_dataset
    from cores.data.statistics import statistics

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
    from cores.runs.run import train_run

    with display.training_progress(config) as report:
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
        from cores.runs.run import predict_test_graphs

        shown = predict_test_graphs(
            folder, options.pictures, data_root=path_or_none(options.data_root)
        )
        draw_subgraphs(*shown, folder / "subgraphs.png")
    if not options.json:
        display.print_metrics(metrics, str(folder))
    return metrics


def evaluate(options: Namespace) -> dict[str, Any]:
    """Measure one run again."""
    from cores.runs.run import evaluate_run

    metrics = evaluate_run(
        Path(options.run),
        dataset=options.dataset,
        data_root=path_or_none(options.data_root),
        device=options.device,
        alpha=options.alpha,
        sample=options.sample,
    )
    if not options.json:
        display.print_metrics(metrics, options.run)
    return metrics


def search(options: Namespace) -> dict[str, Any]:
    """Search for settings."""
    from cores.runs import search as searching

    if options.trials < 1:
        raise UserError(f"--trials must be positive, got {options.trials}")
    check_workers(options.workers)
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
            data_root=path_or_none(options.data_root),
            done=lambda each: advance(f"trial {each.number}", each.failure),
        )
    settings = str(folder / searching.SETTINGS)
    if not options.json:
        display.print_trials(tried, settings)
    return {"settings": settings, "trials": [asdict(each) for each in tried]}


def reproduce(options: Namespace) -> dict[str, Any]:
    """Make a table or figure of the paper."""
    from cores.paper.command import reproduce as make

    return make(options)


def benchmark(options: Namespace) -> dict[str, Any]:
    """Measure the speed ratios."""
    from cores.runs.benchmark import benchmark as measure

    if options.device == "cuda":
        raise UserError("the ratios are defined on one CPU thread; leave --device cuda out")
    figures = measure(options.repeats)
    if not options.json:
        display.print_benchmark(figures)
    return figures


def _run_config(options: Namespace) -> RunConfig:
    """Preset, then settings file, then options."""
    from cores.config.presets import preset_config

    given = options.given.as_dict()
    changes = {name: value for name, value in given.items() if name in RunConfig.__annotations__}
    for name, (path, _) in SHORT.items():
        if options[name] is not None:
            group, setting = path.split(".")
            changes = merged(changes, {group: {setting: options[name]}})
    file = {} if options.settings is None else _settings(Path(options.settings))
    changes = merged(file, changes)
    choice = _choice(changes)
    changes["dataset"] = canonical_name(choice.dataset)
    chosen = changes["dataset"], choice.model, choice.conv, choice.preset
    _choice(file)  # what is wrong in the file is told even where an option overrides it
    preset_config(*chosen, {name: value for name, value in file.items() if name not in CHOICE})
    return preset_config(*chosen, changes)


def _choice(settings: dict[str, Any]) -> RunConfig:
    """What decides which preset the other settings change."""
    return RunConfig.from_settings({name: settings[name] for name in CHOICE if name in settings})


def _settings(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise UserError(f"cannot read --settings {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"--settings {path} is not valid TOML: {error}") from None


def _default_folder(config: RunConfig) -> Path:
    dataset = Path(config.dataset).stem
    return Path("runs") / (
        f"{dataset}-{config.model}-{config.conv}-split{config.split}-seed{config.seed}"
    )
