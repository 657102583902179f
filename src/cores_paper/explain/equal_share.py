"""Scores of different methods, compared on subgraphs of the same size."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores import GraphModel, GraphStore
from cores.config import Removal
from cores.evaluation.predictions import EVALUATION_BATCH, predict_proba, predict_told
from cores.evaluation.scores import Scores
from cores.graphs.masks import largest, rounded_up, scattered
from cores.graphs.segments import place_within
from cores.graphs.subgraphs import Elements
from cores.tasks.metrics import accuracy


@dataclass(frozen=True)
class EqualShare:
    """How much of every graph is kept, whoever says what: by nodes or by edges."""

    graphs: GraphStore
    removal: Removal
    """``node`` or ``edge``."""
    ratio: Float[Tensor, " graphs"]
    judge: nn.Module
    """A classifier that has met none of the methods."""

    def metrics(self, scores: Scores, model: GraphModel) -> dict[str, float]:
        """What is left if the best-scored part of every graph is kept.

        - ``judge_accuracy``: the judge's accuracy on the kept parts.
        - ``sufficiency``, ``comprehensiveness``: how much less probable the class that the model
          predicts is from the kept part, and from the rest, than from the full graph; asked of the
          model that is explained (see :mod:`cores.evaluation.faithfulness`).

        Args:
            scores: Of all graphs.
            model: The model that is explained.
        """
        kept, rest = list(self._kept(scores)), self._kept(scores, rest=True)
        predicted, full = _predicted(model, self.graphs)
        judge = cast(GraphModel, self.judge)

        def lost(parts: Iterable[Batch]) -> float:
            return float((full - _probability(model, parts, predicted)).double().mean())

        return {
            "judge_accuracy": accuracy(predict_proba(judge, kept), self.graphs.y),
            "sufficiency": lost(kept),
            "comprehensiveness": lost(rest),
        }

    def _kept(self, scores: Scores, rest: bool = False) -> Iterator[Batch]:
        """The kept parts of all graphs in batches, or what is left without them."""
        graphs = self.graphs
        for index in torch.arange(len(graphs)).split(EVALUATION_BATCH):
            elements = Elements.of(graphs.batch(index), self.removal)
            removed = self.removed(elements, element_values(scores, graphs, index, elements), index)
            yield elements.subgraph(elements.removable(~removed) if rest else removed).batch

    def removed(
        self, elements: Elements, values: Float[Tensor, " elements"], index: Tensor
    ) -> Bool[Tensor, " elements"]:
        """All but the best-scored elements; which of equal ones stay has nothing to do with them.

        At least one element of a graph is kept.
        """
        ratio = self.ratio[index.to(self.ratio.device)]
        ties = scattered(place_within(elements.owner, len(index)))
        values = elements.fill_protected(values, torch.inf)
        return ~largest(values, elements.owner, rounded_up(ratio * elements.count), ties)


def element_values(
    scores: Scores, graphs: GraphStore, index: Tensor, elements: Elements
) -> Float[Tensor, " elements"]:
    """The scores of the elements of some graphs that follow each other."""
    first, last = int(index[0]), int(index[-1]) + 1
    if elements.removal == "node":
        return scores.nodes[int(graphs.node_ptr[first]) : int(graphs.node_ptr[last])]
    edges = scores.edges[int(graphs.edge_ptr[first]) : int(graphs.edge_ptr[last])]
    pairs = edges.new_empty(elements.batch.pair_index.size(1))
    return pairs.index_copy(0, elements.batch.edge_pair, edges)  # both directions score the same


@torch.no_grad()
def _predicted(model: GraphModel, graphs: GraphStore) -> tuple[Tensor, Tensor]:
    """The class that a model predicts for every graph, and its probability from the full graph."""
    classes = predict_told(model, graphs).argmax(dim=-1)
    return classes, _probability(model, graphs.batches(EVALUATION_BATCH), classes)


@torch.no_grad()
def _probability(
    model: GraphModel, parts: Iterable[Batch], classes: Tensor
) -> Float[Tensor, " graphs"]:
    """Of a class for every graph, from a part of it that nothing more is removed from."""
    model.eval()
    probs = torch.cat([model.full_logits(batch) for batch in parts]).softmax(dim=-1)
    return probs.gather(1, classes[:, None]).squeeze(1)
