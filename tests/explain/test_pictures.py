"""Pictures are drawn; what they show is looked at by people."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.evaluation.predictions import predict
from cores.explain.drawing import WRONG, Drawing
from cores.explain.explanation import Explanation, explanations
from cores.explain.layout import crossings
from cores.explain.pictures import draw_subgraphs
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
    return list(explanations(graphs, predict(model, graphs), NAMES, None, labelled=True))


def test_a_picture_of_a_few_graphs_is_a_png(tmp_path: Path) -> None:
    draw_subgraphs(explained("node"), NAMES, tmp_path / "subgraphs.png")
    assert (tmp_path / "subgraphs.png").read_bytes().startswith(b"\x89PNG")


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
        Axes, "set_title", lambda _, text, color, **__: titles.append((text, color))
    )
    draw_subgraphs(found, NAMES, tmp_path / "subgraphs.png")
    assert [text.startswith("WRONG: true") for text, _ in titles] == wrong
    assert [color == WRONG for _, color in titles] == wrong


RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]


def test_rings_are_open_and_edges_are_drawn_once() -> None:
    both_ways = [*RING, *((b, a) for a, b in RING)]
    drawing = Drawing.of(both_ways, [True] * 6, RING[:2], None)
    assert drawing.edges == sorted(RING)
    assert crossings(drawing.positions, drawing.edges) == 0
    radius = np.linalg.norm(drawing.positions - drawing.positions.mean(axis=0), axis=1)
    assert radius.max() / radius.min() < 1.05


def test_nodes_that_lost_all_their_edges_are_hollow_where_edges_alone_are_removed() -> None:
    drawing = Drawing.of([*RING, (5, 6)], [True] * 8, RING[:2], None)
    assert drawing.lonely_nodes == [False] * 3 + [True] * 4 + [False], "the last never had one"
    axis = Figure().subplots()
    drawing.draw(axis)
    faces = [tuple(dots.get_facecolor()[0][:3]) for dots in axis.collections if dots_of(dots)]
    assert faces[-1] == (1.0, 1.0, 1.0)
    removed = Drawing.of(RING, [True, True, False, True, True, True], [(0, 1)], None)
    assert not any(removed.lonely_nodes)


def test_the_kept_part_of_a_large_graph_is_in_front_and_its_nodes_are_small() -> None:
    path = [(node, node + 1) for node in range(499)]
    kept = [node % 3 == 0 for node in range(500)]
    drawing = Drawing.of(path, kept, [], None)
    axis = Figure().subplots()
    drawing.draw(axis)
    gone, front = (dots for dots in axis.collections if dots_of(dots))
    assert (len(gone.get_offsets()), len(front.get_offsets())) == (333, 167)
    assert gone.get_zorder() < front.get_zorder()
    assert gone.get_sizes()[0] < front.get_sizes()[0] < 20


def dots_of(drawn: Any) -> bool:
    """Whether nodes are drawn, and any at all."""
    return hasattr(drawn, "get_sizes") and len(drawn.get_offsets()) > 0
