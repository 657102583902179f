"""Tables of measured rows beside the paper, by target of `cores reproduce`, and their files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cores.config.models import conv_spec
from cores.files import write_atomically
from cores.runs.rows import Row, kept_metric, matching, spread
from cores_paper.tables.cells import cores_cells, cores_claims, gnn_cells
from cores_paper.tables.comparison import comparison_tables
from cores_paper.tables.price import price_claims
from cores_paper.tables.rows import rows_of_conv
from cores_paper.tables.style import mean_percent, percent, removal_titles
from cores_paper.tables.table import Bold, Table
from cores_paper.tables.targets import (
    ABLATIONS,
    BASE_CONV,
    PLAIN_GNN,
    TARGET_CONVS,
    policies,
    published_statistics,
)


def tables_of(rows: Sequence[Row], target: str, preset: str) -> dict[str, Table]:
    """Every table of a target that there are runs for, by caption."""
    if target in ABLATIONS:
        setting = ABLATIONS[target].setting
        return {f"Kept ratio and accuracy over {setting}, percent": ablation_table(rows, target)}
    tables: dict[str, Table] = {}
    for conv in TARGET_CONVS[target]:
        conv_rows = rows_of_conv(rows, conv)
        models = {row["model"] for row in conv_rows}
        found: dict[str, Table] = {}
        if PLAIN_GNN in models:
            found["The plain GNN"] = gnn_table(conv_rows, conv, preset)
        titles = removal_titles([model for model in policies() if model in models])
        for model, title in titles.items():
            found[f"CORES {title}"] = cores_table(conv_rows, model, conv)
        if len(models) > 1 or (models and not found):
            found |= comparison_tables(conv_rows, conv)
        tables |= {
            f"{caption} ({conv_spec(conv).title}), percent": table
            for caption, table in found.items()
        }
    return tables


def claims_of(rows: Sequence[Row], target: str) -> list[str]:
    """How the CORES models of a target compare with the paper, a sentence each, in Markdown."""
    return [
        f"{conv_spec(conv).title}: {claim}"
        for conv in TARGET_CONVS.get(target, ())
        if any(row["conv"] == conv and row["model"] in policies() for row in rows)
        for claims in (cores_claims, price_claims)
        for claim in claims([row for row in rows if row["conv"] == conv], conv)
    ]


def write_tables(tables: Mapping[str, Table], claims: Sequence[str], stem: Path) -> list[Path]:
    """Write tables as Markdown, with the claims, and as LaTeX; returns the files."""
    sections = [f"## {caption}\n\n{table.markdown()}\n" for caption, table in tables.items()]
    latex = [table.latex(f"{caption}.") for caption, table in tables.items()]
    texts = {
        ".md": "\n".join([*sections, *(f"{claim}\n" for claim in claims)]),
        ".tex": "\n\n".join(latex) + "\n",
    }
    files = []
    for suffix, text in texts.items():
        files.append(stem.with_suffix(suffix))
        write_atomically(files[-1], text.encode())
    return files


def gnn_table(rows: Sequence[Row], conv: str, preset: str) -> Table:
    """The plain GNN of one conv beside the paper's, the majority rate, and the mlp.

    The mlp has no conv: its runs at the settings of GIN stand in every table.
    """
    head = (
        *("dataset", "runs", "paper", "ours", "reached", "balanced", "majority"),
        *("mlp", "mlp balanced"),
    )
    lines = []
    for cell in gnn_cells(rows, conv, preset):
        at = {"dataset": cell.dataset, "preset": preset}
        gnn = matching(rows, {**at, "conv": conv, "model": PLAIN_GNN})
        mlp = matching(rows, {**at, "conv": BASE_CONV, "model": "mlp"})
        columns = [
            cell.dataset,
            str(cell.ours.runs),
            percent(cell.paper),
            percent(cell.ours),
            "–" if cell.paper is None else ("yes" if cell.reached else "no"),
            percent(spread(gnn, "balanced_accuracy")),
            mean_percent(spread(gnn, "majority_rate")),
            percent(spread(mlp, "accuracy")),
            percent(spread(mlp, "balanced_accuracy")),
        ]
        lines.append(columns)
    return Table(head, lines)


def cores_table(rows: Sequence[Row], model: str, conv: str) -> Table:
    """A CORES model beside the paper's, with its judge and the plain GNN on the same test graphs.

    A dataset is bold if both accuracy and kept ratio are at least as good as the paper's.
    """
    head = (
        *("dataset", "runs", "accuracy", "paper", "kept", "paper", "judge", "judge random"),
        *("judge whole", "own, whole", "balanced", "majority", "plain GNN", "short of"),
    )
    lines = []
    for cell in cores_cells(rows, model, conv):
        at = {"dataset": cell.dataset, "conv": conv}
        cores = matching(rows, {**at, "model": model})
        gnn = matching(rows, {**at, "model": PLAIN_GNN})
        columns = [
            Bold(cell.dataset) if cell.better else cell.dataset,
            str(cell.accuracy.runs),
            *(percent(cell.accuracy), percent(cell.paper_accuracy)),
            *(percent(cell.kept), percent(cell.paper_kept)),
            percent(cell.judge),
            percent(spread(cores, "judge_random_accuracy")),
            percent(spread(cores, "judge_full_accuracy")),
            percent(spread(cores, "full_accuracy")),
            percent(spread(cores, "balanced_accuracy")),
            mean_percent(spread(cores, "majority_rate")),
            percent(spread(gnn, "accuracy")),
            ", ".join(cell.shortfalls) or "–",
        ]
        lines.append(columns)
    return Table(head, lines)


def ablation_table(rows: Sequence[Row], target: str) -> Table:
    """Kept ratio and accuracy over one setting of the reward (Figures 3 and 4).

    *Rank* is Spearman's correlation of the setting with the mean kept ratio, *span* the last mean
    kept ratio minus the first, in percentage points; both are empty while a run is missing. A cell
    with missing runs gives the number it has in brackets.
    """
    setting, values = ABLATIONS[target].setting, ABLATIONS[target].values
    head = ("dataset", "model", "figure", *(f"{setting} {value:g}" for value in values))
    lines = []
    runs = len({(row["split"], row["seed"]) for row in rows})
    for dataset, model in sorted({(row["dataset"], row["model"]) for row in rows}):
        model_rows = matching(rows, {"dataset": dataset, "model": model})
        for metric, name in ((kept_metric(model), "kept"), ("accuracy", "accuracy")):
            cells = [
                spread([row for row in model_rows if float(row[setting]) == value], metric)
                for value in values
            ]
            rank, span = "", ""
            means = [cell.mean for cell in cells if cell is not None and cell.runs == runs]
            if name == "kept" and len(means) == len(values):
                correlation = _spearman(values, means)
                rank = "–" if correlation is None else f"{correlation:.2f}"
                span = f"{100 * (means[-1] - means[0]):.1f}"
            texts = [
                f"{percent(cell)} ({cell.runs})" if cell and cell.runs < runs else percent(cell)
                for cell in cells
            ]
            lines.append((dataset, model, name, *texts, rank, span))
    return Table((*head, "rank", "span"), lines)


def _spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Rank correlation; None if one side is constant.

    >>> _spearman([0.1, 0.2, 0.3], [5.0, 7.0, 6.0])
    0.5
    >>> _spearman([0.1, 0.2, 0.3], [1.0, 1.0, 1.0]) is None
    True
    """
    from scipy.stats import spearmanr  # slow to import

    if len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return float(spearmanr(first, second).statistic)


def motifs_table(rows: Sequence[Row]) -> Table:
    """One line per run on graphs with ground-truth explanations."""
    metrics = (
        *("accuracy", "node_ratio", "edge_ratio", "node_auc", "edge_auc", "node_recall"),
        *("node_precision", "judge_accuracy", "seconds"),
    )
    lines = []
    for row in rows:
        texts = [f"{float(row[metric]):.3g}" if row[metric] else "–" for metric in metrics]
        lines.append((row["dataset"], row["model"], row["seed"], *texts))
    return Table(("dataset", "model", "seed", *metrics), lines)


def explanations_table(rows: Sequence[Row]) -> Table:
    """Models that score nodes or edges, averaged over runs, against ground-truth explanations."""
    metrics = {
        "accuracy": "accuracy",
        "judge": "judge_accuracy",
        "nodes kept": "node_ratio",
        "edges kept": "edge_ratio",
        "node AUC": "node_auc",
        "edge AUC": "edge_auc",
        "node recall": "node_recall",
        "node precision": "node_precision",
    }
    if any(row.get("effect_node_auc") for row in rows):
        metrics |= {
            "effects: node AUC": "effect_node_auc",
            "effects: edge AUC": "effect_edge_auc",
        }
    lines = []
    for dataset, model in sorted({(row["dataset"], row["model"]) for row in rows}):
        model_rows = matching(rows, {"dataset": dataset, "model": model})
        texts = [
            percent(spread([row for row in model_rows if metric in row], metric))
            for metric in metrics.values()
        ]
        lines.append((dataset, model, str(len(model_rows)), *texts))
    return Table(("dataset", "model", "runs", *metrics), lines)


def statistics_table(measured: Sequence[Mapping[str, Any]]) -> Table:
    """Table 1 as measured, with the paper's number in brackets where it differs."""
    columns = list(next(iter(published_statistics().values())))
    lines = []
    for row in measured:
        paper = published_statistics().get(row["dataset"], {})
        texts = [row["dataset"]]
        for column in columns:
            differs = column in paper and paper[column] != row[column]
            brackets = f" ({_text(paper[column])})" if differs else ""
            texts.append(_text(row[column]) + brackets)
        lines.append(texts)
    return Table(["dataset", *(column.replace("_", " ") for column in columns)], lines)


def _text(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
