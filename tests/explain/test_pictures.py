"""Pictures are drawn; what they show is looked at by people."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.evaluation.predictions import predict
from cores.explain.drawing import DOTS, LAYERS, GraphDrawing
from cores.explain.explanation import Explanation, explanations
from cores.explain.layout import crossings
from cores.explain.plotting import ROLES, WRONG
from cores.explain.run import draw_subgraphs
from cores.models.classifier import Classifier
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier

NAMES = ("cycle", "house")


def explained(removal: Removal) -> list[Explanation]:
    graphs = ba_motifs(num_graphs=4, seed=0)
    network = NetworkConfig(hidden_dim=8, num_layers=2)
    torch.manual_seed(0)
    dims = Dims(num_features=10, num_classes=2)
    policy = Policy(dims, network, "gin", removal, initial_removal=0.5, min_probability=0.02)
    for head in ("node_head", "edge_head"):
        if hasattr(policy, head):
            torch.nn.init.normal_(getattr(policy, head).weight)
    model = SparseClassifier(policy, Classifier(dims, network, "gin"))
    found = predict(model, graphs)
    return list(explanations(graphs, found, NAMES, None, "classification", labelled=True))


@pytest.mark.parametrize("removal", ["node", "edge"])
def test_the_legend_names_what_was_removed(
    removal: Removal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where edges are removed, every node is kept: grey dots would show what is not there."""
    legends: list[list[str]] = []

    def legend(self: Figure, handles: list[Any], **style: Any) -> None:
        legends.append([handle.get_label() for handle in handles])

    monkeypatch.setattr(Figure, "legend", legend)
    explained(removal)[0].visualize_graph(tmp_path / "graph.svg")
    removed = "removed edges" if removal == "edge" else "removed"
    assert removed in legends[0]
    assert "truly decides the class" in legends[0]


def test_a_wrong_prediction_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = explained("node")
    wrong = [bool(each.target != each.y) for each in found]
    assert [each.correct for each in found] == [not mistake for mistake in wrong]
    assert 0 < sum(wrong) < len(wrong)
    titles: list[tuple[str, str]] = []
    monkeypatch.setattr(
        Axes, "set_title", lambda _, label, color="", **__: titles.append((label, color))
    )
    draw_subgraphs(found, NAMES, tmp_path / "subgraphs.png")
    assert (tmp_path / "subgraphs.png").read_bytes().startswith(b"\x89PNG")
    assert [text.startswith("WRONG: true") for text, _ in titles] == wrong
    assert [color == WRONG for _, color in titles] == wrong


RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]


def test_rings_are_open() -> None:
    drawing = GraphDrawing.of(RING, [True] * 6, [True] * 6, None)
    positions = np.array(drawing.points, dtype=float)
    assert crossings(positions, RING) == 0
    radius = np.linalg.norm(positions - positions.mean(axis=0), axis=1)
    assert radius.max() / radius.min() < 1.05


def test_a_page_and_a_figure_draw_the_same_lines_and_dots() -> None:
    kept = [True, True, True, False, True, False]
    edges = [kept[a] and kept[b] for a, b in RING]
    drawing = GraphDrawing.of(RING, kept, edges, [False] * 5 + [True])
    svg = dict(re.findall(r'class="(\w+)" d="([^"]*)"', drawing.svg()))
    axis = Figure().subplots()
    drawing.draw(axis)
    for kind, drawn in zip(svg, axis.collections, strict=True):
        shapes = [list(map(int, re.findall(r"\d+", each))) for each in svg[kind].split("M")[1:]]
        if kind in DOTS:
            assert np.array(shapes)[:, :2].tolist() == drawn.get_offsets().tolist()
        else:
            assert shapes == [line.flatten().tolist() for line in drawn.get_segments()]
        role, _ = LAYERS[kind]
        assert to_hex(drawn.get_edgecolor()[0]) == ROLES[role]
    assert list(svg) == list(LAYERS)


def test_of_a_large_graph_the_kept_part_and_what_is_near_is_drawn_with_small_dots() -> None:
    path = [(node, node + 1) for node in range(499)]
    kept = [node < 60 for node in range(500)]
    drawing = GraphDrawing.of(path, kept, [b < 60 for _, b in path], None)
    assert [at for at, point in enumerate(drawing.points) if point] == list(range(61))
    assert drawing.missing == 439
    axis = Figure().subplots()
    drawing.draw(axis)
    removed, front = (drawn for drawn in axis.collections if isinstance(drawn, PathCollection))
    assert (len(removed.get_offsets()), len(front.get_offsets())) == (1, 60)
    assert removed.get_zorder() < front.get_zorder()
    small = GraphDrawing.of(RING, [True] * 6, [True] * 6, None)
    other = Figure().subplots()
    small.draw(other)
    assert front.get_sizes()[0] < 0.5 * other.collections[-1].get_sizes()[0]
