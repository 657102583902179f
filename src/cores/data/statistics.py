"""Table 1: the size and shape of a dataset, measured."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from cores.data.dataset import Dataset
from cores.graphs.segments import owners
from cores.graphs.store import GraphStore


def statistics(dataset: Dataset) -> dict[str, Any]:
    """The columns of Table 1; deviations are population ones, as there."""
    graphs = dataset.graphs
    nodes_mean, nodes_std = _mean_and_std(graphs.num_nodes)
    edges_mean, edges_std = _mean_and_std(graphs.num_edges)
    return {
        "dataset": dataset.name,
        "graphs": len(graphs),
        "node_features": graphs.num_features,
        "edge_features": graphs.num_edge_features,
        "classes": dataset.num_classes,
        "undirected": is_undirected(graphs),
        "nodes_mean": nodes_mean,
        "nodes_std": nodes_std,
        "edges_mean": edges_mean,
        "edges_std": edges_std,
    }


def _mean_and_std(counts: Int[Tensor, " graphs"]) -> tuple[float, float]:
    std, mean = torch.std_mean(counts.double(), correction=0)
    return round(float(mean), 2), round(float(std), 2)


def is_undirected(graphs: GraphStore) -> bool:
    """Whether every edge is there in both directions."""
    source, target = graphs.edge_index + graphs.node_ptr[owners(graphs.num_edges)]
    nodes = graphs.x.size(0)
    forward = (source * nodes + target).sort().values
    backward = (target * nodes + source).sort().values
    return bool(torch.equal(forward, backward))
