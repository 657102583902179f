"""Fill README.md and the pages of results from the committed rows (``make results``)."""

import csv
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

from cores.config import RunConfig
from cores.config.models import MODELS
from cores.data.catalogue import PAPER_DATASETS
from cores.errors import UserError, nearest
from cores.files import write_atomically
from cores.runs.rows import Row, matching, read_rows, rows_of_conv, spread, with_keys
from cores.runs.table import Table
from cores_paper.explain.comparison_rows import EXPLANATIONS
from cores_paper.explain.comparison_rows import summary_table as methods_table
from cores_paper.explain.equal_risk_rows import EQUAL_RISK, ORDERS
from cores_paper.presets import has_published_settings
from cores_paper.tables.cells import cores_claims, gnn_cells
from cores_paper.tables.comparison import (
    baselines_table,
    comparison_tables,
    coverage_table,
    gnn_difference_table,
)
from cores_paper.tables.figures import ablation_figure
from cores_paper.tables.price import price_claims, price_table
from cores_paper.tables.style import REMOVED, ordered_datasets, percent
from cores_paper.tables.tables import (
    ablation_table,
    cores_table,
    explanations_table,
    gnn_table,
    motifs_table,
)
from cores_paper.tables.targets import (
    ABLATIONS,
    ARCHITECTURES,
    BASE_CONV,
    COMPARISONS,
    PLAIN_GNN,
    SPLITS,
    TARGET_CONVS,
    models_of,
    paper_baselines,
    paper_policies,
    runs_of,
)
from cores_paper.tables.timing_rows import REPEATS, read_timings, timing_table
from measured import measured_runs
from readme import FRESH_SPLITS, readme_claims, summary_table

PAGES = ("explain.md", "promise.md", "results.md", "results_0.2.md")
MANY_SPLITS = tuple(range(1, 21))
SMALL = ("BZR", "COX2", "MUTAG", "PTC")
"""Datasets with test parts so small that five splits are too few."""
PROMISED_LOSSES = "0.02", "0.05", "0.1"
"""The losses that orders are compared at."""
EXPLAINED = ("BA_2Motifs", "Benzene", "Mutagenicity")
"""Datasets with ground-truth explanations."""


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
        "motifs-now": motifs_table(with_keys(rows, _motifs())).markdown(),
        **_all_models(rows),
        **_earlier(rows),
        **_many_splits(rows),
        **_architectures(rows),
        **_explained(rows),
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


def figures(folder: Path, out: Path) -> list[Path]:
    """Draw the figures of the pages; returns the files."""
    rows = read_rows(folder / "runs.csv")
    return [
        file
        for target in ABLATIONS
        for file in ablation_figure(_ablation_rows(rows, target), target, out / target)
    ]


def _gnn(rows: list[Row]) -> dict[str, str]:
    """The plain GNN by conv, with the mlp, and the number of cells that reach the paper."""
    mlp = runs_of("comparison-gin", PAPER_DATASETS, ["mlp"], SPLITS, "paper")
    by_conv = {
        conv: with_keys(
            rows, [*runs_of(target, PAPER_DATASETS, [PLAIN_GNN], SPLITS, "paper"), *mlp]
        )
        for target, conv in COMPARISONS.items()
    }
    cells = [
        cell for conv, conv_rows in by_conv.items() for cell in gnn_cells(conv_rows, conv, "paper")
    ]
    complete = [cell for cell in cells if cell.ours.runs == len(SPLITS)]
    reached = sum(cell.reached for cell in complete)
    motifs = runs_of("comparison-gin", ["motifs", "BA_2Motifs"], [PLAIN_GNN], SPLITS, "default")
    return {
        "plain-gnn": f"Reached in **{reached} of {len(complete)}** cells.",
        **{
            f"plain-gnn-{conv}": gnn_table(conv_rows, conv, "paper").markdown()
            for conv, conv_rows in by_conv.items()
        },
        "plain-gnn-motifs": gnn_table(with_keys(rows, motifs), BASE_CONV, "default").markdown(),
    }


def _fresh(rows: list[Row]) -> dict[str, str]:
    """CORES less the plain GNN on the splits that its settings were not chosen on."""
    models = [PLAIN_GNN, *paper_policies()]
    fresh = with_keys(
        rows, runs_of("comparison-gin", PAPER_DATASETS, models, FRESH_SPLITS, "default")
    )
    return _modes(fresh, BASE_CONV, "fresh") | {"fresh": _price(fresh)}


def _price(rows: list[Row]) -> str:
    """What choosing a part costs and gains, in words and as a table."""
    table = price_table(rows, BASE_CONV)
    lines = [f"- {claim}" for claim in price_claims(rows, BASE_CONV)]
    return "\n".join([*lines, "", table.markdown()] if table is not None else lines)


def _cores(rows: list[Row]) -> dict[str, str]:
    """CORES by preset and mode beside the paper, and its prediction sets."""
    models = [PLAIN_GNN, *paper_policies()]
    default = with_keys(rows, runs_of("comparison-gin", PAPER_DATASETS, models, SPLITS, "default"))
    paper = with_keys(rows, _cores_runs("comparison-gin", PAPER_DATASETS, SPLITS, "paper"))
    return {
        **_modes(default, BASE_CONV, "cores-default"),
        **_modes(paper, BASE_CONV, "cores-paper"),
        "coverage": coverage_table(default, BASE_CONV).markdown(),
    }


def _motifs() -> list[RunConfig]:
    """CORES on BA-2Motifs, three seeds of one split."""
    policies, seeds = paper_policies(), (0, 1, 2)
    return runs_of("comparison-gin", ["BA_2Motifs"], policies, [1], "default", seeds=seeds)


def _earlier(rows: list[Row]) -> dict[str, str]:
    """CORES at version 0.2's default preset: beside the paper, its ablations, on BA-2Motifs."""
    runs = _cores_runs("comparison-gin", PAPER_DATASETS, SPLITS, "default")
    made = _modes(with_keys(rows, runs), BASE_CONV, "earlier")
    made["earlier-coverage"] = coverage_table(with_keys(rows, runs), BASE_CONV).markdown()
    for target in ABLATIONS:
        made[target] = ablation_table(_ablation_rows(rows, target), target).markdown()
    target, seeds = "comparison-gin", (0, 1, 2)
    motifs = measured_runs(target, ["BA_2Motifs"], paper_policies(), [1], "default", seeds)
    return made | {"motifs": motifs_table(with_keys(rows, motifs)).markdown()}


def _cores_runs(
    target: str, datasets: Sequence[str], splits: Sequence[int], preset: str
) -> list[RunConfig]:
    """As version 0.2 measured them."""
    return measured_runs(target, datasets, [PLAIN_GNN, *paper_policies()], splits, preset)


def _ablation_rows(rows: list[Row], target: str) -> list[Row]:
    return with_keys(
        rows, measured_runs(target, PAPER_DATASETS, paper_policies(), SPLITS, "default")
    )


def _many_splits(rows: list[Row]) -> dict[str, str]:
    """The small datasets over more splits, beside the paper and minus the plain GNN."""
    small = with_keys(rows, _cores_runs("comparison-gin", SMALL, MANY_SPLITS, "default"))
    return {
        **_modes(small, BASE_CONV, "twenty-splits"),
        "twenty-splits-less-gnn": gnn_difference_table(small, BASE_CONV).markdown(),
    }


def _architectures(rows: list[Row]) -> dict[str, str]:
    """CORES and the plain GNN with the other convs."""
    made: dict[str, str] = {}
    both = with_keys(rows, _cores_runs(ARCHITECTURES, PAPER_DATASETS, SPLITS, "default"))
    for conv in TARGET_CONVS[ARCHITECTURES]:
        made |= _modes(rows_of_conv(both, conv), conv, f"cores-{conv}")
        made[f"cores-{conv}-less-gnn"] = gnn_difference_table(both, conv).markdown()
    return made


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
        runs_as = runs_of if preset == "default" else measured_runs
        runs = runs_as("comparison-gin", PAPER_DATASETS, models, SPLITS, preset)
        made[f"all-{preset}"] = "\n\n".join(
            f"**{caption}**\n\n{table.markdown()}"
            for caption, table in comparison_tables(with_keys(rows, runs), BASE_CONV).items()
        )
    peers = [name for name in paper_baselines() if has_published_settings(name)]
    for target, conv in COMPARISONS.items():
        if conv != BASE_CONV:
            runs = runs_of(target, PAPER_DATASETS, peers, SPLITS, "paper")
            made[f"peers-{conv}"] = baselines_table(with_keys(rows, runs), conv).markdown()
    return made


def _explained(rows: list[Row]) -> dict[str, str]:
    """CORES beside GSAT, the strongest soft mask."""
    models = ["gsat", *paper_policies()]
    runs = measured_runs("comparison-gin", EXPLAINED, models, SPLITS, "default")
    return {"explained": explanations_table(with_keys(rows, runs)).markdown()}


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


if __name__ == "__main__":
    results, readme, docs = map(Path, sys.argv[1:])
    made = parts(results)
    for page in (readme, *(docs / name for name in PAGES)):
        write_atomically(page, filled(page.read_text(encoding="utf-8"), made).encode())
    figures(results, docs)
