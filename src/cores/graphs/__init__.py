"""Graphs as tensors: many at once, parts of them, random masks. No learning."""

from cores.graphs.subgraphs import edge_ratio, node_ratio, remove_edges, remove_nodes

__all__ = ["edge_ratio", "node_ratio", "remove_edges", "remove_nodes"]
