"""`cores benchmark`: the speed ratios, and the seconds of an epoch on a dataset."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cores import UserError
from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.options import add_data_root, is_named


def _parser() -> CommandParser:
    parser = CommandParser(
        "Measure the speed ratios, in one process with one thread; or, with --dataset, the parts "
        "of an epoch on that data and a device."
    )
    parser.add_argument(
        "--dataset",
        metavar="NAME_OR_FILE",
        help="Measure on this data instead: an epoch of the plain GNN, the parts of one of CORES, "
        "predictions in batches of 1, 32 and 256, and imports.",
    )
    parser.add_argument(
        "--model",
        default="cores-node",
        metavar="NAME",
        help="With --dataset: cores-node, cores-edge or cores-both (default: cores-node).",
    )
    parser.add_count("--repeats", "Interleaved repeats of each (default: 15).", default=15)
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="Tell which ratios are worse by more than a tenth than in this file, which an earlier "
        "`cores benchmark --json` has printed.",
    )
    add_data_root(parser)
    return parser


def _benchmark(options: Namespace) -> dict[str, Any]:
    from cores_paper.benchmark import read_ratios, slower

    before = None if options.compare is None else read_ratios(options.compare)
    ratios = _synthetic(options) if options.dataset is None else _on_dataset(options)
    worse = None if before is None else slower(ratios, before)
    if not options.json:
        _print_ratios(ratios, before or {})
        if worse is not None:
            _print_slower(worse)
    return ratios if worse is None else {**ratios, "slower": worse}


def _synthetic(options: Namespace) -> dict[str, float]:
    from cores_paper.benchmark import benchmark

    if options.device == "cuda":
        raise UserError("the ratios are defined on one CPU thread; add --dataset to measure a GPU")
    return benchmark(options.repeats)


def _on_dataset(options: Namespace) -> dict[str, float]:
    from cores import load_dataset
    from cores.config.presets import own_data_settings, preset_config
    from cores.runs.device import choose_device
    from cores_paper.speed import dataset_benchmark

    name = options.dataset
    dataset = load_dataset(name, options.data_root)
    settings = {} if is_named(name) else own_data_settings(len(dataset))
    config = preset_config(name, options.model, "gin", "default", settings)
    return dataset_benchmark(dataset, config, choose_device(options.device), options.repeats)


def _print_ratios(metrics: Mapping[str, float], before: Mapping[str, float]) -> None:
    """Print ratios, beside those of an earlier measurement, then the seconds they come from."""
    table = Table()
    table.add_column("metric")
    table.add_column("value", justify="right")
    if before:
        table.add_column("before", justify="right")
    for name in sorted(metrics, key=lambda name: "seconds" in name):
        known = [f"{before[name]:.4g}" if name in before else ""] if before else []
        table.add_row(display.plain_text(name), f"{metrics[name]:.4g}", *known)
    Console().print(table)


def _print_slower(growth: Mapping[str, float]) -> None:
    """Remark which ratios have grown, and by how much."""
    for name, times in growth.items():
        display.print_note(f"{name} is {times:.2f} times what it was")
    if not growth:
        display.print_note("no ratio is worse by more than a tenth")


BENCHMARK = Command(
    "benchmark", "measure the speed ratios", _parser, _benchmark, takes_scripts=False
)
