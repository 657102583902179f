"""Subgraphs G_s of a batch: remove nodes or edges, and nothing of what was removed is left.

Sec. 4.2.1 of the paper. A policy's decision is a bool per node or per directed edge; both
directions of an undirected edge share theirs.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch_geometric.data import Batch


def remove_nodes(batch: Batch, removed: Bool[Tensor, " nodes"]) -> Batch:
    """V_s = kept nodes, E_s = edges between them; every graph stays in the batch, maybe empty.

    >>> path = Batch(
    ...     x=torch.arange(3.0)[:, None],
    ...     edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
    ...     batch=torch.zeros(3, dtype=torch.int64),
    ...     ptr=torch.tensor([0, 3]),
    ... )
    >>> subgraph = remove_nodes(path, torch.tensor([True, False, False]))
    >>> subgraph.x.tolist(), subgraph.edge_index.tolist()
    ([[1.0], [2.0]], [[0, 1], [1, 0]])
    """
    kept = ~removed  # [N]
    kept_edges = kept[batch.edge_index].all(dim=0)  # [E]
    new_number = kept.cumsum(0) - 1  # [N]
    nodes_left = _count(batch.batch[kept], batch.num_graphs)
    return _filtered(
        batch,
        kept,
        kept_edges,
        edge_index=new_number[batch.edge_index[:, kept_edges]],  # [2, E_s]
        ptr=torch.cat([nodes_left.new_zeros(1), nodes_left.cumsum(0)]),
    )


def remove_edges(batch: Batch, removed: Bool[Tensor, " edges"]) -> Batch:
    """V_s = all nodes, E_s = kept edges.

    >>> path = Batch(
    ...     x=torch.arange(3.0)[:, None],
    ...     edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
    ...     batch=torch.zeros(3, dtype=torch.int64),
    ...     ptr=torch.tensor([0, 3]),
    ... )
    >>> remove_edges(path, torch.tensor([True, True, False, False])).edge_index.tolist()
    [[1, 2], [2, 1]]
    """
    kept = ~removed  # [E]
    return _filtered(batch, None, kept, edge_index=batch.edge_index[:, kept])


def node_ratio(batch: Batch, removed: Bool[Tensor, " nodes"]) -> Float[Tensor, " graphs"]:
    """Share of each graph's nodes that is kept; 1 for a graph without nodes."""
    total = _count(batch.batch, batch.num_graphs)
    return _share(_count(batch.batch[~removed], batch.num_graphs), total)


def edge_ratio(batch: Batch, removed: Bool[Tensor, " edges"]) -> Float[Tensor, " graphs"]:
    """Share of each graph's edges that is kept; 1 for a graph without edges."""
    owner = batch.batch[batch.edge_index[0]]  # [E]
    return _share(_count(owner[~removed], batch.num_graphs), _count(owner, batch.num_graphs))


def _count(owner: Int[Tensor, " items"], num_graphs: int) -> Int[Tensor, " graphs"]:
    return torch.bincount(owner, minlength=num_graphs)


def _share(kept: Int[Tensor, " graphs"], total: Int[Tensor, " graphs"]) -> Float[Tensor, " graphs"]:
    return torch.where(total > 0, kept / total.clamp(min=1), 1.0)


def _filtered(batch: Batch, nodes: Tensor | None, edges: Tensor, **replaced: Tensor) -> Batch:
    """The batch with node and edge attributes filtered, and some attributes replaced."""
    chosen = dict(replaced)
    for name, value in batch.to_dict().items():
        if name in chosen:
            continue
        if batch.is_edge_attr(name):
            value = value[edges]
        elif nodes is not None and batch.is_node_attr(name):
            value = value[nodes]
        chosen[name] = value
    return Batch(**chosen)
