"""`cores datasets`: Table 1, measured."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from cores.cli.command import Command, CommandParser
from cores.cli.display import plain_text
from cores.cli.options import add_data_root
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
        _print(measured, missing, others)
    return {"datasets": measured, "missing": list(missing), "others": others}


def _print(
    rows: Sequence[Mapping[str, Any]], missing: Mapping[str, str], others: Sequence[str]
) -> None:
    """Print Table 1, other known datasets, and how to get those whose files are missing."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("dataset", no_wrap=True)
    counts = ("graphs", "node\nfeat.", "edge\nfeat.", "classes", "undi-\nrected")
    for name in (*counts, "nodes", "edges"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            plain_text(row["dataset"]),
            *(str(row[name]) for name in ("graphs", "node_features", "edge_features", "classes")),
            "yes" if row["undirected"] else "no",
            f"{row['nodes_mean']:.2f} ± {row['nodes_std']:.2f}",
            f"{row['edges_mean']:.2f} ± {row['edges_std']:.2f}",
        )
    console = Console()
    if rows:
        console.print(table)
    if others:
        console.print(plain_text(f"Also known: {', '.join(others)}"), soft_wrap=True)
    if missing:
        width = max(map(len, missing))
        lines = [f"{name:{width}} {remedy}" for name, remedy in missing.items()]
        for line in ("", f"{'not here':{width}} how to get it", *lines):
            console.print(plain_text(line), soft_wrap=True)  # a path is copied in one piece


LIST_DATASETS = Command("datasets", "the datasets: Table 1, measured", _parser, _datasets)
