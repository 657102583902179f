"""Fill README.md and the pages of tables from the committed rows (``make results``)."""

import csv
import re
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

from cores.config.models import MODELS
from cores.errors import UserError, nearest
from cores.files import write_atomically
from cores.plugins import load_plugins
from cores.runs.rows import Row, matching, spread
from cores_paper.explain.comparison_rows import EXPLANATIONS
from cores_paper.explain.comparison_rows import summary_table as methods_table
from cores_paper.explain.equal_risk_rows import EQUAL_RISK, ORDERS
from cores_paper.presets import has_published_settings
from cores_paper.tables.cells import cores_claims, gnn_cells
from cores_paper.tables.comparison import baselines_table, comparison_tables, coverage_table
from cores_paper.tables.price import price_claims, price_table
from cores_paper.tables.rows import read_rows
from cores_paper.tables.style import REMOVED, ordered_datasets, percent
from cores_paper.tables.table import Table
from cores_paper.tables.tables import (
    cores_table,
    explanations_table,
    gnn_table,
    motifs_table,
)
from cores_paper.tables.targets import (
    BASE_CONV,
    COMPARISONS,
    PLAIN_GNN,
    SPLITS,
    models_of,
    paper_baselines,
    paper_policies,
)
from cores_paper.tables.timing_rows import REPEATS, read_timings, timing_table
from readme import FRESH_SPLITS, picked, readme_claims, summary_table

PROMISED_LOSSES = "0.02", "0.05", "0.1"
"""The losses that orders are compared at."""

_MARK = re.compile(r"<!-- (make results: [\w-]+|end) -->")
_PART = re.compile(r"<!-- make results: ([\w-]+) -->.*?<!-- end -->", flags=re.DOTALL)


def filled(text: str, made: Mapping[str, str]) -> str:
    """A page with the text of each part between its marks, replacing what is there.

    >>> print(filled("<!-- make results: sum --> 3 <!-- end -->", {"sum": "4"}))
    <!-- make results: sum -->
    <BLANKLINE>
    4
    <BLANKLINE>
    <!-- end -->
    """
    ends = [mark == "end" for mark in _MARK.findall(text)]
    if ends != [False, True] * (len(ends) // 2):
        raise UserError("each <!-- make results: PART --> needs an <!-- end --> behind it")

    def fill(found: re.Match[str]) -> str:
        part = found[1]
        if part not in made:
            raise UserError(f"no part {part!r} is made from rows; {nearest(part, made)}")
        return f"<!-- make results: {part} -->\n\n{made[part]}\n\n<!-- end -->"

    return _PART.sub(fill, text)


def parts(folder: Path) -> dict[str, str]:
    """Every part that is made from the rows in a folder, by name."""
    load_plugins()  # the baselines' titles
    rows = read_rows(folder / "runs.csv")
    return {
        "readme": readme_claims(rows),
        "summary": summary_table(rows),
        **_gnn(rows),
        **_fresh(rows),
        "adapted": _price(read_rows(folder / "adapted.csv")),
        "explained-now": explanations_table(read_rows(folder / "explained.csv")).markdown(),
        "bond-features": _bond_features(folder),
        **_cores(rows),
        "motifs-now": motifs_table(_motifs(rows)).markdown(),
        **_all_models(rows),
        **_seconds(folder),
        "equal-risk": _equal_risk(read_rows(folder / "equal_risk.csv", EQUAL_RISK)),
        "methods": _methods(read_rows(folder / "explanations.csv", EXPLANATIONS)),
        "machines": _machines(rows),
    }


def _bond_features(folder: Path) -> str:
    """Known reasons with bond features: where a run was made again, its later row."""
    rows = {row["key"]: row for row in read_rows(folder / "bond_features.csv")}
    with (folder / "effects.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["key"] in rows or row["dataset"] == "BA_2Motifs":
                rows[row["key"]] = row
    return explanations_table([*rows.values()]).markdown()


def _methods(rows: list[Row]) -> str:
    """Ways to explain where the reason is known, a table for each dataset."""
    made = []
    for dataset in ordered_datasets(row["dataset"] for row in rows):
        runs = matching(rows, {"dataset": dataset})
        splits = len({row["split"] for row in runs})
        slower = _times_as_long(runs, "cores-node")
        made += [
            f"**{dataset}**, {splits} splits of {runs[0]['graphs']} test graphs. GNNExplainer "
            f"takes {slower:.0f} times as long per graph as `cores-node`.",
            methods_table(runs).markdown(),
        ]
    return "\n\n".join(made)


def _times_as_long(rows: list[Row], method: str) -> float:
    """Seconds that GNNExplainer takes per graph, in those of another method."""
    seconds = [
        sum(float(row["seconds_per_graph"]) for row in matching(rows, {"method": name}))
        for name in ("gnnexplainer", method)
    ]
    return seconds[0] / seconds[1]


def _equal_risk(rows: list[Row]) -> str:
    """What orders keep, and lose on the test part, at the losses that are promised."""
    shown = [
        (loss, metric, name)
        for loss in PROMISED_LOSSES
        for metric, name in (("kept_ratio", "kept"), ("loss", "lost"))
    ]
    lines = []
    for dataset in ordered_datasets(row["dataset"] for row in rows):
        for removal, (method, order) in product(("node", "edge"), ORDERS.items()):
            runs = matching(rows, {"dataset": dataset, "removal": removal, "method": method})
            if not runs:
                continue
            splits = {row["split"] for row in runs}
            cells = [percent(spread(runs, metric, max_loss=loss)) for loss, metric, _ in shown]
            lines.append([dataset, f"{removal}s", order.title, str(len(splits)), *cells])
    heads = [f"{name} at {loss}" for loss, _, name in shown]
    return Table(["dataset", "cut", "order", "splits", *heads], lines).markdown()


def _gnn(rows: list[Row]) -> dict[str, str]:
    """The plain GNN by conv, with the mlp, and the number of cells that reach the paper."""
    mlp = picked(rows, ["mlp"], SPLITS, "paper")
    by_conv = {
        conv: [*picked(rows, [PLAIN_GNN], SPLITS, "paper", conv), *mlp]
        for conv in COMPARISONS.values()
    }
    cells = [
        cell for conv, conv_rows in by_conv.items() for cell in gnn_cells(conv_rows, conv, "paper")
    ]
    complete = [cell for cell in cells if cell.ours.runs == len(SPLITS)]
    reached = sum(cell.reached for cell in complete)
    motifs = picked(rows, [PLAIN_GNN], SPLITS, datasets=["motifs", "BA_2Motifs"])
    return {
        "plain-gnn": f"Reached in **{reached} of {len(complete)}** cells.",
        **{
            f"plain-gnn-{conv}": gnn_table(conv_rows, conv, "paper").markdown()
            for conv, conv_rows in by_conv.items()
        },
        "plain-gnn-motifs": gnn_table(motifs, BASE_CONV, "default").markdown(),
    }


def _fresh(rows: list[Row]) -> dict[str, str]:
    """CORES less the plain GNN on the splits that its settings were not chosen on."""
    fresh = picked(rows, [PLAIN_GNN, *paper_policies()], FRESH_SPLITS)
    return _modes(fresh, BASE_CONV, "fresh") | {"fresh": _price(fresh)}


def _price(rows: list[Row]) -> str:
    """What choosing a part costs and gains, in words and as a table."""
    table = price_table(rows, BASE_CONV)
    lines = [f"- {claim}" for claim in price_claims(rows, BASE_CONV)]
    return "\n".join([*lines, "", table.markdown()] if table is not None else lines)


def _cores(rows: list[Row]) -> dict[str, str]:
    """CORES by preset and mode beside the paper, and its prediction sets."""
    models = [PLAIN_GNN, *paper_policies()]
    default = picked(rows, models, SPLITS)
    return {
        **_modes(default, BASE_CONV, "cores-default"),
        **_modes(picked(rows, models, SPLITS, "paper"), BASE_CONV, "cores-paper"),
        "coverage": coverage_table(default, BASE_CONV).markdown(),
    }


def _motifs(rows: list[Row]) -> list[Row]:
    """CORES on BA-2Motifs, three seeds of one split."""
    return picked(rows, paper_policies(), [1], datasets=["BA_2Motifs"], seeds=(0, 1, 2))


def _modes(rows: list[Row], conv: str, name: str) -> dict[str, str]:
    """The claims about CORES, and its tables by mode."""
    return {
        name: "\n\n".join(cores_claims(rows, conv)),
        **{
            f"{name}-{REMOVED[MODELS[model].removes]}": cores_table(rows, model, conv).markdown()
            for model in paper_policies()
        },
    }


def _all_models(rows: list[Row]) -> dict[str, str]:
    """The comparison of all models by preset, and the baselines with the other convs."""
    made: dict[str, str] = {}
    for preset in ("default", "paper"):
        models = models_of("comparison-gin", preset)
        runs = picked(rows, models, SPLITS, preset)
        made[f"all-{preset}"] = "\n\n".join(
            f"**{caption}**\n\n{table.markdown()}"
            for caption, table in comparison_tables(runs, BASE_CONV).items()
        )
    peers = [name for name in paper_baselines() if has_published_settings(name)]
    for conv in COMPARISONS.values():
        if conv != BASE_CONV:
            runs = picked(rows, peers, SPLITS, "paper", conv)
            made[f"peers-{conv}"] = baselines_table(runs, conv).markdown()
    return made


def _seconds(folder: Path) -> dict[str, str]:
    """Timings on one CPU thread, at the full number of repeats."""
    timings = [
        timing
        for timing in read_timings(folder / "times.csv")
        if (timing.machine, timing.repeats) == ("cpu", REPEATS[timing.action])
    ]
    return {f"seconds-{action}": timing_table(timings, action).markdown() for action in REPEATS}


def _machines(rows: list[Row]) -> str:
    """The machines and commits of the rows; accuracies depend on neither beyond rounding."""
    kinds = sorted({row["machine"] for row in rows})
    counts = ", ".join(f"{sum(row['machine'] == kind for row in rows)} on {kind}" for kind in kinds)
    nameless = sum(not row["commit"] for row in rows)
    dirty = sum(row["commit"].endswith("-dirty") for row in rows)
    return (
        f"Rows: {counts}. {dirty} name a commit whose tree had changes (`-dirty`), "
        f"{nameless} name none."
    )


def pages(root: Path) -> list[Path]:
    """The pages that have parts made from rows."""
    return [root / "README.md", root / "docs" / "results.md", *sorted(root.glob("results/*.md"))]


if __name__ == "__main__":
    root = Path(sys.argv[1])
    made = parts(root / "results")
    for page in pages(root):
        write_atomically(page, filled(page.read_text(encoding="utf-8"), made).encode())
