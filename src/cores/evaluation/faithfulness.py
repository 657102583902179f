"""How faithful kept parts are, without ground truth: measured on models alone."""

from collections.abc import Sequence
from itertools import combinations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import Removal
from cores.evaluation.predictions import Predictions
from cores.graphs.batches import marks, new_batch, with_pairs
from cores.graphs.masks import largest
from cores.graphs.segments import owners
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements, Subgraph, remove_edges, remove_nodes
from cores.models.sparse import SparseClassifier

SEED = 0
"""Of permutations, of the edges that are left out, and of random parts."""


@torch.no_grad()
def faithfulness_metrics(
    model: SparseClassifier, graphs: GraphStore, predictions: Predictions
) -> dict[str, float | None]:
    """Means over the graphs.

    - ``sufficiency_loss``: how much less probable the predicted class is from the kept part than
      from the full graph; 0 or less is good (DeYoung et al., 2020).
    - ``comprehensiveness``: how much less probable it is from the rest, without the kept part;
      large is good.
    - ``fidelity_minus``, ``fidelity_plus``: the same in labels: share of the graphs whose class
      from the full graph changes if only the kept part is left, and if only the rest is.
    - ``idempotence``: share of the kept part that is kept when the model is given that alone.
    - ``permutation_stability``: overlap (intersection over union) of what is kept with what is
      kept when the nodes are numbered otherwise; 1 for any GNN.
    - ``edge_stability``: the same when one edge of the graph is missing; null without edges.

    Args:
        model: A classifier behind its policy.
        graphs: What to measure on.
        predictions: The model's, not from samples of its policy.
    """
    model.eval()
    random = torch.Generator().manual_seed(SEED)
    found: dict[str, list[Tensor]] = {}
    for batch, kept, probs in predictions.batches(graphs):
        for name, values in _measured(model, batch, kept, probs, random).items():
            found.setdefault(name, []).append(values)
    joined = {name: torch.cat(values).double() for name, values in found.items()}
    known = {name: values[values.isfinite()] for name, values in joined.items()}
    return {name: float(values.mean()) if len(values) else None for name, values in known.items()}


def _measured(
    model: SparseClassifier,
    batch: Batch,
    subgraph: Subgraph,
    told: Float[Tensor, "graphs classes"],
    random: torch.Generator,
) -> dict[str, Float[Tensor, " graphs"]]:
    """Of every graph; NaN where there is nothing to measure."""
    remaining = rest_of(batch, subgraph, model.policy.removal)
    full, kept, rest = (
        model.classifier(each).softmax(dim=-1) for each in (batch, subgraph.batch, remaining)
    )
    predicted = told.argmax(dim=-1, keepdim=True)
    from_full, from_kept, from_rest = (
        each.gather(1, predicted).squeeze(1) for each in (full, kept, rest)
    )
    label = full.argmax(dim=-1)
    again = model.prediction(subgraph.batch).subgraph
    return {
        "sufficiency_loss": from_full - from_kept,
        "comprehensiveness": from_full - from_rest,
        "fidelity_minus": (kept.argmax(dim=-1) != label).float(),
        "fidelity_plus": (rest.argmax(dim=-1) != label).float(),
        "idempotence": _kept_ratio(subgraph.batch, again, model.policy.removal),
        "permutation_stability": _permutation_stability(model, batch, subgraph, random),
        "edge_stability": _edge_stability(model, batch, subgraph, random),
    }


def _kept_ratio(batch: Batch, kept: Subgraph, removal: Removal) -> Float[Tensor, " graphs"]:
    """Share of the elements that is kept of graphs that were parts themselves."""
    elements, removed = Elements.of(batch, removal), []
    if removal != "edge":
        removed.append(kept.removed_nodes)
    if removal != "node":
        pairs = kept.removed_edges.new_zeros(elements.batch.pair_index.size(1))
        removed.append(pairs.index_copy(0, elements.batch.edge_pair, kept.removed_edges))
    return elements.kept_ratio(torch.cat(removed))


def rest_of(batch: Batch, kept: Subgraph, removal: Removal) -> Batch:
    """What is left of the graphs without the kept parts; all nodes where only edges are removed."""
    if removal == "edge":
        return remove_edges(batch, ~kept.removed_edges)
    return remove_nodes(batch, Elements.of(batch, "node").removable(~kept.removed_nodes))


def _permutation_stability(
    model: SparseClassifier, batch: Batch, kept: Subgraph, random: torch.Generator
) -> Float[Tensor, " graphs"]:
    order = shuffled_nodes(batch, random)
    found = model.prediction(permuted(batch, order)).subgraph
    removed_nodes = torch.empty_like(found.removed_nodes)
    removed_nodes[order] = found.removed_nodes
    if model.policy.removal == "edge":  # edges stay in their order
        return _edge_overlap(batch, ~kept.removed_edges, ~found.removed_edges)
    return overlap(batch.batch, ~kept.removed_nodes, ~removed_nodes, batch.num_graphs)


def _edge_stability(
    model: SparseClassifier, batch: Batch, kept: Subgraph, random: torch.Generator
) -> Float[Tensor, " graphs"]:
    missing = one_edge_each(batch, random)
    found = model.prediction(remove_edges(batch, missing)).subgraph
    if model.policy.removal == "edge":  # the missing one does not count
        others = torch.zeros_like(missing)
        others[~missing] = ~found.removed_edges
        stable = _edge_overlap(batch, ~(kept.removed_edges | missing), others)
    else:
        stable = overlap(batch.batch, ~kept.removed_nodes, ~found.removed_nodes, batch.num_graphs)
    edges = torch.bincount(batch.batch[batch.edge_index[0]], minlength=batch.num_graphs)
    return stable.where(edges > 0, torch.nan)


def _edge_overlap(
    batch: Batch, kept: Bool[Tensor, " edges"], others: Bool[Tensor, " edges"]
) -> Float[Tensor, " graphs"]:
    return overlap(batch.batch[batch.edge_index[0]], kept, others, batch.num_graphs)


def shuffled_nodes(batch: Batch, random: torch.Generator) -> Int[Tensor, " nodes"]:
    """The nodes in another order, those of a graph still together."""
    order = torch.randperm(batch.x.size(0), generator=random).to(batch.x.device)
    return order[batch.batch[order].argsort(stable=True)]


def permuted(batch: Batch, order: Int[Tensor, " nodes"]) -> Batch:
    """The same graphs with their nodes in another order."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    features = {"edge_attr": batch.edge_attr} if "edge_attr" in batch else {}
    return new_batch(
        x=batch.x[order],
        edge_index=place[batch.edge_index],
        batch=batch.batch,
        ptr=batch.ptr,
        y=batch.y,
        **marks(batch),
        **features,
    )


def one_edge_each(batch: Batch, random: torch.Generator) -> Bool[Tensor, " edges"]:
    """Both directions of one edge of every graph that has any."""
    batch = with_pairs(batch)
    owner = batch.batch[batch.pair_index[0]]  # [P]
    values = torch.rand(len(owner), generator=random).to(owner.device)
    largest = values.new_zeros(batch.num_graphs).scatter_reduce(0, owner, values, "amax")
    return (values == largest[owner])[batch.edge_pair]


def overlap(
    owner: Int[Tensor, " items"],
    kept: Bool[Tensor, " items"],
    others: Bool[Tensor, " items"],
    num_graphs: int,
) -> Float[Tensor, " graphs"]:
    """Intersection over union of what is kept and otherwise kept, in each graph; 1 for nothing.

    >>> overlap(
    ...     torch.tensor([0, 0, 0, 1]),
    ...     torch.tensor([True, True, False, False]),
    ...     torch.tensor([False, True, False, False]),
    ...     2,
    ... )
    tensor([0.5000, 1.0000])
    """
    both = torch.bincount(owner[kept & others], minlength=num_graphs)
    either = torch.bincount(owner[kept | others], minlength=num_graphs)
    return torch.where(either > 0, both / either.clamp(min=1), 1.0)


def agreement_metrics(
    runs: Sequence[Predictions], graphs: GraphStore, removal: Removal
) -> dict[str, float]:
    """Whether models that were trained apart keep the same: means over graphs and pairs of models.

    - ``run_overlap``: intersection over union of the nodes that two of them keep, or of the edges
      where only those are removed.
    - ``run_overlap_random``: the same for a random part in place of the second, as large: what is
      alike because much is kept.
    """
    random = torch.Generator().manual_seed(SEED)
    counts = graphs.num_edges if removal == "edge" else graphs.num_nodes
    kept = [~(each.removed_edges if removal == "edge" else each.removed_nodes) for each in runs]
    owner = owners(counts.to(kept[0].device))
    found, by_chance = [], []
    for one, other in combinations(kept, 2):
        size = torch.bincount(owner[other], minlength=len(graphs))
        values = torch.rand(len(owner), generator=random).to(owner.device)
        found.append(overlap(owner, one, other, len(graphs)))
        by_chance.append(overlap(owner, one, largest(values, owner, size), len(graphs)))
    return {
        "run_overlap": float(torch.cat(found).double().mean()),
        "run_overlap_random": float(torch.cat(by_chance).double().mean()),
    }
