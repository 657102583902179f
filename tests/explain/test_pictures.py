"""Pictures are drawn; what they show is looked at by people."""

from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.evaluation.predictions import predict
from cores.explain.explanation import Explanation, explanations
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
