"""What the pages show of the committed rows: ``make results`` puts it between their marks."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from cores.config.presets import PAPER_DATASETS, has_published_settings, preset_config
from cores.errors import UserError, nearest
from cores.files import write_atomically
from cores.paper.comparison import (
    NAMES,
    beside_the_paper,
    comparison_tables,
    coverages,
    less_the_gnn,
)
from cores.paper.figures import ablation_figure
from cores.paper.tables import (
    ablation,
    explanations,
    motifs,
    of_conv,
    plain_gnn,
    plain_gnn_cells,
    sparse,
    sparse_claims,
)
from cores.paper.targets import ABLATIONS, ARCHITECTURES, COMPARISONS, CONVS, SPLITS, runs_of
from cores.paper.time_tables import times
from cores.paper.times import REPEATS, read_timings
from cores.runs.rows import Row, read_rows, with_keys
from readme import readme_table

MANY_SPLITS = tuple(range(1, 21))
SMALL = ("BZR", "COX2", "MUTAG", "PTC")
"""Datasets whose test parts are so small that five splits tell little."""
EXPLAINED = ("BA_2Motifs", "Benzene", "Mutagenicity")
"""Datasets with a known reason."""

_MODES = {"cores-node": "nodes", "cores-edge": "edges"}
_PEERS = ("sagpool", "gpool")
"""The models that the paper runs with GCN and GAT, too."""

_MARK = re.compile(r"<!-- (make results: [\w-]+|end) -->")
_PART = re.compile(r"<!-- make results: ([\w-]+) -->.*?<!-- end -->", flags=re.DOTALL)


def filled(text: str, made: Mapping[str, str]) -> str:
    """A page with the parts that it names between their marks, whatever stood there.

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
    """All that is made from the rows in a folder, by name."""
    rows = read_rows(folder / "runs.csv")
    return {
        "readme": readme_table(rows),
        **_plain(rows),
        **_cores(rows),
        **_many_splits(rows),
        **_architectures(rows),
        **_all_models(rows),
        **_explained(rows),
        **_seconds(folder),
        "machines": _machines(rows),
    }


def figures(folder: Path, out: Path) -> list[Path]:
    """Draw the figures that docs/results.md shows; returns the files."""
    rows = read_rows(folder / "runs.csv")
    return [
        file
        for target in ABLATIONS
        for file in ablation_figure(_steered(rows, target), target, out / target)
    ]


def _plain(rows: list[Row]) -> dict[str, str]:
    """The plain GNN by conv, with the mlp beside it, and the cells that reach the paper's."""
    mlp = runs_of("comparison-gin", PAPER_DATASETS, ["mlp"], SPLITS, "paper")
    mine = {
        conv: with_keys(rows, [*runs_of(target, PAPER_DATASETS, ["gnn"], SPLITS, "paper"), *mlp])
        for target, conv in COMPARISONS.items()
    }
    cells = [cell for conv in mine for cell in plain_gnn_cells(mine[conv], conv, "paper")]
    whole = [cell for cell in cells if cell.ours.runs == len(SPLITS)]
    easy = runs_of("comparison-gin", ["motifs", "BA_2Motifs"], ["gnn"], SPLITS, "default")
    return {
        "plain-gnn": f"Reached in **{sum(cell.reached for cell in whole)} of {len(whole)}** cells.",
        **{f"plain-gnn-{conv}": plain_gnn(mine[conv], conv, "paper").markdown() for conv in mine},
        "plain-gnn-motifs": plain_gnn(with_keys(rows, easy), "gin", "default").markdown(),
    }


def _cores(rows: list[Row]) -> dict[str, str]:
    """CORES by preset and mode, steered by d and lambda, and where the reason is known."""
    found: dict[str, str] = {}
    for preset in ("default", "paper"):
        models = ["gnn", *_MODES]
        mine = with_keys(rows, runs_of("comparison-gin", PAPER_DATASETS, models, SPLITS, preset))
        found |= _modes(mine, "gin", f"cores-{preset}")
        if preset == "default":  # the other one calibrates no sets
            found["coverage"] = coverages(mine, "gin").markdown()
    for target in ABLATIONS:
        found[target] = ablation(_steered(rows, target), target).markdown()
    known = [
        preset_config("BA_2Motifs", model, "gin", "default", {"seed": seed})
        for model in _MODES
        for seed in range(3)
    ]
    return found | {"motifs": motifs(with_keys(rows, known)).markdown()}


def _steered(rows: list[Row], target: str) -> list[Row]:
    return with_keys(rows, runs_of(target, PAPER_DATASETS, list(_MODES), SPLITS, "default"))


def _many_splits(rows: list[Row]) -> dict[str, str]:
    """The small datasets over more splits, beside the paper's and less the plain GNN."""
    models = ["gnn", *_MODES]
    mine = with_keys(rows, runs_of("comparison-gin", SMALL, models, MANY_SPLITS, "default"))
    return {
        **_modes(mine, "gin", "twenty-splits"),
        "twenty-splits-less-gnn": less_the_gnn(mine, "gin").markdown(),
    }


def _architectures(rows: list[Row]) -> dict[str, str]:
    """CORES and the plain GNN with the other convs."""
    models = ["gnn", *_MODES]
    found: dict[str, str] = {}
    mine = with_keys(rows, runs_of(ARCHITECTURES, PAPER_DATASETS, models, SPLITS, "default"))
    for conv in CONVS[ARCHITECTURES]:
        found |= _modes(of_conv(mine, conv), conv, f"cores-{conv}")
        found[f"cores-{conv}-less-gnn"] = less_the_gnn(mine, conv).markdown()
    return found


def _modes(rows: list[Row], conv: str, name: str) -> dict[str, str]:
    """What CORES comes to, and its tables by mode."""
    return {
        name: "\n\n".join(sparse_claims(rows, conv)),
        **{
            f"{name}-{mode}": sparse(rows, model, conv).markdown() for model, mode in _MODES.items()
        },
    }


def _all_models(rows: list[Row]) -> dict[str, str]:
    """The comparison of all models by preset, and of the peers that have other convs."""
    found: dict[str, str] = {}
    for preset in ("default", "paper"):
        models = [name for name in NAMES if preset == "default" or has_published_settings(name)]
        mine = with_keys(rows, runs_of("comparison-gin", PAPER_DATASETS, models, SPLITS, preset))
        found[f"all-{preset}"] = "\n\n".join(
            f"**{caption}**\n\n{table.markdown()}"
            for caption, table in comparison_tables(mine, "gin").items()
        )
    for target, conv in COMPARISONS.items():
        if conv != "gin":
            mine = with_keys(rows, runs_of(target, PAPER_DATASETS, _PEERS, SPLITS, "paper"))
            found[f"peers-{conv}"] = beside_the_paper(mine, conv).markdown()
    return found


def _explained(rows: list[Row]) -> dict[str, str]:
    """CORES beside the strongest soft mask."""
    models = ["gsat", *_MODES]
    mine = with_keys(rows, runs_of("comparison-gin", EXPLAINED, models, SPLITS, "default"))
    return {"explained": explanations(mine).markdown()}


def _seconds(folder: Path) -> dict[str, str]:
    """Times on one CPU thread, at the full number of repeats."""
    timings = [
        each
        for each in read_timings(folder / "times.csv")
        if (each.machine, each.repeats) == ("cpu", REPEATS[each.action])
    ]
    return {f"seconds-{action}": times(timings, action).markdown() for action in REPEATS}


def _machines(rows: list[Row]) -> str:
    """Where the rows were measured; accuracies do not depend on it beyond rounding."""
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
    for page in (readme, docs / "results.md"):
        write_atomically(page, filled(page.read_text(encoding="utf-8"), made).encode())
    figures(results, docs)
