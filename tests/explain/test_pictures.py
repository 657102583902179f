"""Pictures are drawn; what they show is looked at by people."""

from pathlib import Path

import torch

from cores.config import NetworkConfig
from cores.data.synthetic import ba_motifs
from cores.evaluation.predictions import predict
from cores.explain.pictures import draw_subgraphs
from cores.models.classifier import Classifier
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier
from cores.runs.trained import Task


def test_a_picture_of_a_few_graphs_is_a_png(tmp_path: Path) -> None:
    graphs = ba_motifs(num_graphs=4, seed=0)
    network = NetworkConfig(hidden_dim=8, num_layers=2)
    torch.manual_seed(0)
    policy = Policy(10, network, "gin", "node", start=0.5, floor=0.02)
    model = SparseClassifier(policy, Classifier(10, 2, network, "gin"))
    task = Task((), (), ("cycle", "house"), "")
    draw_subgraphs(graphs, predict(model, graphs), task, tmp_path / "subgraphs.png")
    assert (tmp_path / "subgraphs.png").read_bytes().startswith(b"\x89PNG")
