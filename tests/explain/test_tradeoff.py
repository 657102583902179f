"""The picture of a comparison: what is drawn where."""

from pathlib import Path
from typing import Any

import pytest

from cores.explain import plotting
from cores.explain.tradeoff import tradeoff_figure


def row(model: str, accuracy: float, nodes: float, edges: float) -> dict[str, str]:
    measured = {"accuracy": accuracy, "node_ratio": nodes, "edge_ratio": edges}
    found = {name: str(value) for name, value in measured.items()}
    return {"model": model, "majority_rate": "0.6", **found}


ROWS = [
    row("cores-edge", 0.8, 1.0, 0.25),
    row("gnn", 0.7, 1.0, 1.0),
    row("gnn", 0.9, 1.0, 1.0),
    row("mlp", 0.5, 1.0, 1.0),
]


def test_a_model_is_drawn_at_its_accuracy_and_the_share_it_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Any] = []
    monkeypatch.setattr(plotting, "save_figure", lambda figure, _: figures.append(figure) or [])
    tradeoff_figure(ROWS, "my $data$", tmp_path / "unwritten")
    axis = figures[0].axes[0]
    points = {
        line.get_label(): (round(line.get_xdata()[0], 2), round(line.get_ydata()[0], 2))
        for line in axis.lines
        if len(line.get_xdata()) == 1
    }
    assert points == {"GNN": (99.25, 80), "MLP": (100.75, 50), "CORES edges": (25, 80)}
    legend = [text.get_text() for text in figures[0].legends[0].get_texts()]
    assert legend == [*points, "largest class"]
    assert axis.get_title(loc="left") == r"my \$data\$"


def test_the_same_rows_give_the_same_files(tmp_path: Path) -> None:
    first = tradeoff_figure(ROWS, "mine", tmp_path / "a")
    second = tradeoff_figure(ROWS, "mine", tmp_path / "b")
    assert [path.name for path in first] == ["a.png", "a.svg"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
