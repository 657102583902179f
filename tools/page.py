"""Fill README.md and the pages of tables from the committed rows (``make results``)."""

import csv
import re
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from statistics import mean, stdev

from cores.config.models import MODELS
from cores.errors import UserError, nearest
from cores.files import write_atomically
from cores.plugins import load_plugins
from cores.runs.rows import Row, Spread, matching
from cores_paper.explain.comparison_rows import EXPLANATIONS
from cores_paper.explain.comparison_rows import summary_table as methods_table
from cores_paper.presets import has_published_settings
from cores_paper.tables.cells import cores_claims, gnn_cells
from cores_paper.tables.comparison import baselines_table, comparison_tables, coverage_table
from cores_paper.tables.price import price_claims, price_table
from cores_paper.tables.rows import read_rows
from cores_paper.tables.style import REMOVED, ordered_datasets
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

OLD_PRESET = "Measured with the default preset of commit 0fde516 (policy with a dial)."
"""What the rows of CORES at its default settings in ``runs.csv`` are of."""
PART_SPLITS = "101", "102"
"""The splits on which every cell of the table of parts is complete."""
PART_DEFAULT = {
    "parts": "minimal",
    "proposer": "policy",
    "class_from": "whole",
    "lam": "0.5",
    "sufficiency": "0.8",
}
PART_CHOICES = (
    *({"sufficiency": value} for value in ("0.5", "0.7", "0.8", "0.9")),
    *(
        {"parts": parts, "proposer": order}
        for parts, order in product(("cut", "minimal"), ("policy", "effects", "random"))
    ),
    *(
        {"class_from": "part", "lam": lam, "parts": parts}
        for lam, parts in product(("0.5", "0.75", "0.9"), ("policy", "minimal"))
    ),
)
"""The rows of that table: what differs from the default."""
PART_MEASURES: dict[str, tuple[str, ...]] = {
    "accuracy": ("accuracy",),
    "less whole": ("accuracy", "full_accuracy"),
    "kept": ("kept",),
    "weak": ("weak",),
    "one unit": ("one_unit",),
    "questions": ("questions",),
    "judge less full": ("judge_accuracy", "judge_full_accuracy"),
    "judge less random": ("judge_accuracy", "judge_random_accuracy"),
}
"""Its columns: a metric, or the first less the second."""

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
        "readme": f"{OLD_PRESET}\n\n{readme_claims(rows)}",
        "summary": f"{OLD_PRESET}\n\n{summary_table(rows)}",
        **_gnn(rows),
        **_fresh(rows),
        "adapted": _price(read_rows(folder / "adapted.csv")),
        "explained-now": explanations_table(read_rows(folder / "explained.csv")).markdown(),
        "bond-features": _bond_features(folder),
        **_cores(rows),
        "motifs-now": motifs_table(_motifs(rows)).markdown(),
        **_all_models(rows),
        **_seconds(folder),
        "parts": parts_table(folder / "part_settings.csv"),
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


def parts_table(path: Path) -> str:
    """What each choice behind a part is worth, in words and as a table."""
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] in PART_SPLITS]

    def measured(column: str, **choice: str) -> Spread:
        return over_cells(matching(rows, PART_DEFAULT | choice), *PART_MEASURES[column])

    def points(column: str, choice: dict[str, str], other: dict[str, str] | None = None) -> str:
        value = measured(column, **choice).mean
        if other is not None:
            value -= measured(column, **other).mean
        return f"{100 * value:.1f}"

    minimal, cut = ({"parts": parts, "proposer": "random"} for parts in ("minimal", "cut"))
    part = {"class_from": "part", "parts": "policy"}
    low, high = part | {"lam": "0.5"}, part | {"lam": "0.75"}
    claim = (
        f"In front of elimination the policy's order keeps {points('kept', minimal, {})} points "
        f"less than a random smooth order, in front of a cut alone "
        f"{points('kept', cut, {'parts': 'cut'})} points less. A class told from the policy's "
        f"part is right {points('less whole', {}, low)} points less often than one told from the "
        f"whole graph at λ 0.5, where the policy keeps {points('kept', low)} %, and "
        f"{points('less whole', {}, high)} points at λ 0.75, where it keeps "
        f"{points('kept', high)} %: what costs no accuracy is hardly a part. So by default the "
        "class is told from the whole graph."
    )
    lines = []
    for choice in PART_CHOICES:
        shown = PART_DEFAULT | choice
        cells = [_signed(measured(column, **choice), column) for column in PART_MEASURES]
        runs = str(len(matching(rows, shown)))
        lines.append([*shown.values(), runs, *cells])
    head = ["part", "order", "class from", "λ", "τ", "runs", *PART_MEASURES]
    return f"{claim}\n\n{Table(head, lines).markdown()}"


def over_cells(rows: list[Row], metric: str, less: str | None = None) -> Spread:
    """Mean and deviation over datasets and models of the mean over their splits.

    >>> names = {"dataset": "BZR", "model": "cores-node"}
    >>> over_cells([names | {"kept": "0.25"}, names | {"kept": "0.5"}], "kept").mean
    0.375
    """
    cells: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        value = float(row[metric]) - (float(row[less]) if less is not None else 0.0)
        cells.setdefault((row["dataset"], row["model"]), []).append(value)
    means = [mean(values) for values in cells.values()]
    return Spread(mean(means), stdev(means) if len(means) > 1 else None, len(means))


def _signed(value: Spread, column: str) -> str:
    """A cell: questions as they are, all else in percent, differences with a sign."""
    if column == "questions":
        return f"{value.mean:.0f} ± {value.std:.0f}"
    sign = "+" if len(PART_MEASURES[column]) > 1 else ""
    return f"{100 * value.mean:{sign}.1f} ± {100 * (value.std or 0.0):.1f}"


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
