"""How faithful kept parts are, without ground truth: measured on the model alone."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch_geometric.data import Batch

from cores.evaluation.predictions import EVALUATION_BATCH
from cores.graphs.batches import new_batch, with_pairs
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import remove_edges
from cores.models.sparse import Choice, SparseClassifier

SEED = 0
"""Of permutations and of the edges that are left out."""


@torch.no_grad()
def faithfulness_metrics(model: SparseClassifier, graphs: GraphStore) -> dict[str, float | None]:
    """Means over the graphs.

    - ``sufficiency``: how much less probable the predicted class is from the kept part than from
      the full graph; 0 or less is good (DeYoung et al., 2020).
    - ``comprehensiveness``: how much less probable it is from the rest, without the kept part;
      large is good.
    - ``fidelity_minus``, ``fidelity_plus``: the same in labels: share of the graphs whose class
      from the full graph changes if only the kept part is left, and if only the rest is.
    - ``idempotence``: share of the kept part that the policy keeps when it is given that alone.
    - ``permutation_stability``: overlap (intersection over union) of what is kept with what is
      kept when the nodes are numbered otherwise; 1 for any GNN.
    - ``edge_stability``: the same when one edge of the graph is missing; null without edges.
    """
    model.eval()
    random = torch.Generator().manual_seed(SEED)
    found: dict[str, list[Tensor]] = {}
    for batch in graphs.batches(EVALUATION_BATCH):
        for name, values in _measured(model, batch, random).items():
            found.setdefault(name, []).append(values)
    joined = {name: torch.cat(values).double() for name, values in found.items()}
    known = {name: values[values.isfinite()] for name, values in joined.items()}
    return {name: float(values.mean()) if len(values) else None for name, values in known.items()}


def _measured(
    model: SparseClassifier, batch: Batch, random: torch.Generator
) -> dict[str, Float[Tensor, " graphs"]]:
    """Of every graph; NaN where there is nothing to measure."""
    choice = model.choose(batch)
    full, kept, rest = (
        model.classifier(each).softmax(dim=-1)
        for each in (batch, choice.subgraph.batch, rest_of(choice))
    )
    predicted = kept.argmax(dim=-1, keepdim=True)
    from_full, from_kept, from_rest = (
        each.gather(1, predicted).squeeze(1) for each in (full, kept, rest)
    )
    label = full.argmax(dim=-1)
    again = model.choose(choice.subgraph.batch)
    return {
        "sufficiency": from_full - from_kept,
        "comprehensiveness": from_full - from_rest,
        "fidelity_minus": (kept.argmax(dim=-1) != label).float(),
        "fidelity_plus": (rest.argmax(dim=-1) != label).float(),
        "idempotence": again.elements.kept_ratio(again.removed),
        "permutation_stability": _permutation_stability(model, choice, random),
        "edge_stability": _edge_stability(model, choice, random),
    }


def rest_of(choice: Choice) -> Batch:
    """What is left of the graphs without the kept parts."""
    return choice.elements.subgraph(~choice.removed).batch


def _permutation_stability(
    model: SparseClassifier, choice: Choice, random: torch.Generator
) -> Float[Tensor, " graphs"]:
    order = shuffled_nodes(choice.elements.batch, random)
    found = model.choose(permuted(choice.elements.batch, order)).subgraph
    removed_nodes = torch.empty_like(found.removed_nodes)
    removed_nodes[order] = found.removed_nodes
    return _overlap(choice, removed_nodes, found.removed_edges)  # edges stay in their order


def _edge_stability(
    model: SparseClassifier, choice: Choice, random: torch.Generator
) -> Float[Tensor, " graphs"]:
    batch = choice.elements.batch
    missing = one_edge_each(batch, random)
    found = model.choose(remove_edges(batch, missing)).subgraph
    removed_edges = torch.ones_like(missing)
    removed_edges[~missing] = found.removed_edges
    stable = _overlap(choice, found.removed_nodes, removed_edges, missing)
    edges = torch.bincount(batch.batch[batch.edge_index[0]], minlength=batch.num_graphs)
    return stable.where(edges > 0, torch.nan)


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
        **features,
    )


def one_edge_each(batch: Batch, random: torch.Generator) -> Bool[Tensor, " edges"]:
    """Both directions of one edge of every graph that has any."""
    batch = with_pairs(batch)
    owner = batch.batch[batch.pair_index[0]]  # [P]
    values = torch.rand(len(owner), generator=random).to(owner.device)
    largest = values.new_zeros(batch.num_graphs).scatter_reduce(0, owner, values, "amax")
    return (values == largest[owner])[batch.edge_pair]


def _overlap(
    choice: Choice,
    removed_nodes: Bool[Tensor, " nodes"],
    removed_edges: Bool[Tensor, " edges"],
    missing: Bool[Tensor, " edges"] | None = None,
) -> Float[Tensor, " graphs"]:
    """Intersection over union of what is kept, by the choice and otherwise, in each graph.

    Of nodes, or of edges where only edges are removed, without those that are missing; 1 where both
    keep nothing.
    """
    batch, subgraph = choice.elements.batch, choice.subgraph
    if choice.elements.removal == "edge":
        owner, gone = batch.batch[batch.edge_index[0]], subgraph.removed_edges
        kept, others = ~(gone if missing is None else gone | missing), ~removed_edges
    else:
        owner, kept, others = batch.batch, ~subgraph.removed_nodes, ~removed_nodes
    both = torch.bincount(owner[kept & others], minlength=batch.num_graphs)
    either = torch.bincount(owner[kept | others], minlength=batch.num_graphs)
    return torch.where(either > 0, both / either.clamp(min=1), 1.0)
