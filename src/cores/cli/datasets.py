"""`cores datasets`: Table 1, measured."""

from argparse import Namespace
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser, add_data_root, add_import
from cores.data.catalogue import (
    DATASETS,
    PAPER_DATASETS,
    REGISTERED,
    canonical_name,
    data_folder,
    how_to_get,
)


def _parser() -> CommandParser:
    parser = CommandParser(
        "The paper's Table 1, measured from the data. Without names, the paper's nine datasets as "
        "far as they are here, and the names of the others; nothing is downloaded then."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="Datasets, by name or path.")
    add_data_root(parser)
    add_import(parser)
    return parser


def _datasets(options: Namespace) -> dict[str, Any]:
    from cores.data.dataset import statistics
    from cores.data.datasets import load_dataset

    missing: dict[str, str] = {}
    others: list[str] = []
    if not options.names:
        root = data_folder(options.data_root)
        advice = {name: how_to_get(spec, root) for name, spec in DATASETS.items()}
        missing = {name: remedy for name, remedy in advice.items() if remedy is not None}
        known = (*DATASETS, *REGISTERED)
        others = [name for name in known if name not in (*PAPER_DATASETS, *missing)]
    names = [canonical_name(name) for name in options.names or PAPER_DATASETS]
    measured = [
        statistics(load_dataset(name, options.data_root)) for name in names if name not in missing
    ]
    if not options.json:
        display.print_datasets(measured, missing, others)
    return {"datasets": measured, "missing": list(missing), "others": others}


LIST_DATASETS = Command(
    "datasets", "the datasets: Table 1, measured", _parser, _datasets, takes_scripts=True
)
