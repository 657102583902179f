"""Pictures are drawn; what they show is looked at by people."""

from pathlib import Path

import torch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.evaluation.predictions import predict
from cores.explain.pictures import draw_subgraphs
from cores.models.classifier import Classifier
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier
from cores.runs.trained import DataSchema


def test_a_picture_of_a_few_graphs_is_a_png(tmp_path: Path) -> None:
    graphs = ba_motifs(num_graphs=4, seed=0)
    network = NetworkConfig(hidden_dim=8, num_layers=2)
    torch.manual_seed(0)
    dims, names = Dims(num_features=10, num_classes=2), ("cycle", "house")
    policy = Policy(dims, network, "gin", "node", initial_removal=0.5, min_probability=0.02)
    model = SparseClassifier(policy, Classifier(dims, network, "gin"))
    schema = DataSchema((), (), names, names, "")
    draw_subgraphs(graphs, predict(model, graphs), schema, tmp_path / "subgraphs.png")
    assert (tmp_path / "subgraphs.png").read_bytes().startswith(b"\x89PNG")
