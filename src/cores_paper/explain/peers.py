"""Ways to explain a classifier, CORES among them: each one gives scores of nodes and edges."""

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, ExplainerAlgorithm, GNNExplainer, PGExplainer

from cores import GraphModel, GraphStore, UserError
from cores.evaluation.effects import element_effects
from cores.evaluation.predictions import EVALUATION_BATCH, predict
from cores.evaluation.scores import Scores
from cores.models.sparse import SparseClassifier
from cores_paper.explain.shapley import shapley_values

RECIPE = 2
"""Version of these methods and their settings: what was measured with others is not comparable."""
GNN_EPOCHS, GNN_RATE = 200, 0.01
"""Steps of GNNExplainer for every graph, as in PyG's example."""
PG_EPOCHS, PG_RATE, PG_GRAPHS = 30, 0.003, 500
"""Epochs of PGExplainer's training as in PyG's documentation, on at most so many training graphs:
it takes a step per graph."""
PERMUTATIONS = 50
"""Orders of the nodes of every graph behind its Shapley values."""

Explain = Callable[[GraphStore], Scores]
Prepare = Callable[[GraphModel, GraphStore, int], Explain]
"""Makes a method ready to explain a model: from the graphs it was trained on, and a seed."""


def own_scores(model: GraphModel, training: GraphStore, seed: int) -> Explain:
    """The scores of a model that explains itself: nodes or edges, as it weighs them.

    The other ones follow by the rule for all methods, whatever the model makes of them. Those of
    CORES are the probabilities of its policy; no part is searched for them.
    """
    if isinstance(model, SparseClassifier):
        model = model.showing(replace(model.shown, parts="policy"))

    def explain(graphs: GraphStore) -> Scores:
        found = predict(model, graphs)
        scores = found.edge_scores if model.scores_edges else found.node_scores
        if scores is None:
            raise UserError(f"a {type(model).__name__} gives no scores")
        of_elements = Scores.of_edges if model.scores_edges else Scores.of_nodes
        return of_elements(graphs, scores)

    return explain


def effects(model: GraphModel, training: GraphStore, seed: int) -> Explain:
    """The effects of removing nodes or edges, as a model of CORES has learnt them."""

    def explain(graphs: GraphStore) -> Scores:
        found = element_effects(model, graphs)
        if found is None:
            raise UserError("the model has learnt no effects; train it with effects.steps above 0")
        return found.scores(graphs)

    return explain


def random_scores(model: GraphModel, training: GraphStore, seed: int) -> Explain:
    """Independent random scores of nodes: what a method must be better than."""

    def explain(graphs: GraphStore) -> Scores:
        values = torch.rand(len(graphs.x), generator=_generator(seed))
        return Scores.of_nodes(graphs, values.to(graphs.x.device))

    return explain


def of_gradients(
    model: GraphModel,
    training: GraphStore,
    seed: int,
    scores: Callable[[GraphModel, GraphStore], Tensor],
) -> Explain:
    """Scores of nodes by gradients."""
    return lambda graphs: Scores.of_nodes(graphs, scores(model, graphs))


def saliency(model: GraphModel, graphs: GraphStore) -> Float[Tensor, " nodes"]:
    """Length of the gradient of the predicted logit by each node's features (Simonyan, 2014)."""
    return _gradients(model, graphs).norm(dim=-1)


def gradient_input(model: GraphModel, graphs: GraphStore) -> Float[Tensor, " nodes"]:
    """That gradient times the features, summed (Shrikumar et al., 2017): what speaks for the class.

    The features are as the user gave them, before the network scales them.
    """
    return (_gradients(model, graphs) * graphs.x).sum(dim=-1)


def _gradients(model: GraphModel, graphs: GraphStore) -> Float[Tensor, "nodes features"]:
    model.eval()
    found = []
    for batch in graphs.batches(EVALUATION_BATCH):
        watched = copy(batch)
        watched.x = batch.x.detach().clone().requires_grad_()
        predicted = model.full_logits(watched).amax(dim=-1)
        found.append(torch.autograd.grad(predicted.sum(), watched.x)[0])
    return torch.cat(found)


def shapley(model: GraphModel, training: GraphStore, seed: int) -> Explain:
    """Shapley values of the nodes, sampled; see :mod:`cores_paper.explain.shapley`."""

    def explain(graphs: GraphStore) -> Scores:
        classes = predict(model, graphs).probs.argmax(dim=-1)
        random = _generator(seed)
        return Scores.of_nodes(graphs, shapley_values(model, graphs, classes, PERMUTATIONS, random))

    return explain


def gnn_explainer(model: GraphModel, training: GraphStore, seed: int) -> Explain:
    """PyG's GNNExplainer with a mask over the edges, graph by graph."""
    explainer = _explainer(model, GNNExplainer(GNN_EPOCHS, GNN_RATE), "model")

    def mask(graph: Data) -> Tensor:
        found = explainer(graph.x, graph.edge_index, **_features(graph))
        return cast(Tensor, found.edge_mask)

    return partial(_by_masks, mask=mask)


def pg_explainer(model: GraphModel, training: GraphStore, seed: int) -> Explain:
    """PyG's PGExplainer, trained to explain what the model predicts for its training graphs."""
    algorithm = PGExplainer(PG_EPOCHS, PG_RATE).to(training.x.device)
    explainer = _explainer(model, algorithm, "phenomenon")
    _train(algorithm, model, training, _generator(seed))

    def mask(graph: Data) -> Tensor:
        target = _predicted(model, graph)
        found = explainer(graph.x, graph.edge_index, target=target, **_features(graph))
        return cast(Tensor, found.edge_mask)

    return partial(_by_masks, mask=mask)


def _train(
    algorithm: PGExplainer, model: GraphModel, training: GraphStore, random: torch.Generator
) -> None:
    """A step per graph and epoch: PyG's explainers take one graph at a time."""
    with_edges = (training.num_edges > 0).nonzero().flatten()
    chosen = with_edges[torch.randperm(len(with_edges), generator=random)][:PG_GRAPHS]
    if not len(chosen):
        raise UserError("PGExplainer learns from edges, and no training graph has one")
    graphs = [training.graph(index) for index in chosen.tolist()]
    targets = [_predicted(model, graph) for graph in graphs]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Converting a tensor with requires_grad")  # PyG's own
        for epoch in range(PG_EPOCHS):
            for graph, target in zip(graphs, targets, strict=True):
                inputs = graph.x, graph.edge_index
                algorithm.train(epoch, model, *inputs, target=target, **_features(graph))


def _explainer(model: GraphModel, algorithm: ExplainerAlgorithm, kind: str) -> Explainer:
    """PyG's explainer of a frozen model by a mask over edges."""
    model.eval().requires_grad_(False)
    return Explainer(
        model,
        algorithm,
        explanation_type=kind,
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "graph",
            "return_type": "raw",
        },
    )


def _by_masks(graphs: GraphStore, mask: Callable[[Data], Tensor]) -> Scores:
    """Scores by the masks of single graphs; a graph without edges has nothing to mask."""
    found = [
        mask(graph).detach()
        for graph in (graphs.graph(index) for index in range(len(graphs)))
        if graph.edge_index.size(1)
    ]
    return Scores.of_edges(graphs, torch.cat([graphs.x.new_zeros(0), *found]))


@torch.no_grad()
def _predicted(model: GraphModel, graph: Data) -> Int[Tensor, "1"]:
    return model(graph).argmax(dim=-1)


def _features(graph: Data) -> dict[str, Any]:
    return {} if graph.edge_attr is None else {"edge_attr": graph.edge_attr}


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


PREPARE: dict[str, Prepare] = {
    "random": random_scores,
    "saliency": partial(of_gradients, scores=saliency),
    "gradient": partial(of_gradients, scores=gradient_input),
    "shapley": shapley,
    "gnnexplainer": gnn_explainer,
    "pgexplainer": pg_explainer,
    **dict.fromkeys(("gsat", "gmt", "cores-node", "cores-edge"), own_scores),
    **dict.fromkeys(("effects-node", "effects-edge"), effects),
}
"""How each method is made ready; their table is in :mod:`cores_paper.explain.comparison_rows`."""
