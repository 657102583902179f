"""Orders of nodes or edges, compared at the same controlled loss: which one lets go of most?

One classifier predicts graphs that are cut to less and less, in the order that a method gives, or
as the dial of a model turns. The loss of a cut is that the classifier is right on the full graph
and wrong on what is left. Held-out graphs tell which cuts lose no more than promised
(:mod:`cores.risk`); what the sparsest of these keeps of new graphs is the result.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from cores.evaluation.dial import predict_settings
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cores import GraphStore, risk
from cores.config import Removal
from cores.config.policy import SETTINGS
from cores.evaluation.predictions import EVALUATION_BATCH, predict_full
from cores.evaluation.scores import Scores
from cores.graphs.masks import largest, rounded_up, scattered
from cores.graphs.segments import place_within
from cores.graphs.subgraphs import Elements
from cores.models.classifier import Classifier
from cores.models.sparse import SparseClassifier
from cores_paper.explain.equal_share import element_values

SHARES = tuple(1 - step / 20 for step in range(21))
"""What is kept at the settings of a cut, from the full graph down; at 0, one element of a graph."""

Rule = Callable[[Elements, Tensor], Tensor]
"""Which elements every setting keeps, by their scores: bool [settings, elements]."""


@dataclass(frozen=True)
class Cuts:
    """What a classifier makes of graphs at every setting, the first of which keeps all."""

    predicted: Int[Tensor, "graphs settings"]
    kept_ratio: Float[Tensor, "graphs settings"]
    labels: Int[Tensor, " graphs"]

    @cached_property
    def losses(self) -> Bool[Tensor, "graphs settings"]:
        """Right on the full graph and wrong on what is left."""
        return risk.excess_errors(self.predicted[:, 0], self.predicted, self.labels)

    def metrics(self, place: int) -> dict[str, float]:
        """Kept share, loss and accuracy at a setting, and the accuracy on full graphs."""
        right = (self.predicted == self.labels[:, None]).double().mean(dim=0)
        return {
            "kept_ratio": float(self.kept_ratio[:, place].double().mean()),
            "loss": float(self.losses[:, place].double().mean()),
            "accuracy": float(right[place]),
            "full_accuracy": float(right[0]),
        }


def controlled_setting(cuts: Cuts, max_loss: float, confidence: float | None = None) -> int:
    """The setting that keeps least and keeps the promise; the first one, all, where none does.

    Args:
        cuts: Of graphs that nothing was trained on or chosen by.
        max_loss: The largest loss.
        confidence: Probability that it holds for this classifier; None: in expectation.
    """
    if confidence is None:
        mask = risk.risk_controlled(cuts.losses, max_loss)
    else:
        mask = risk.learn_then_test(cuts.losses, max_loss, 1 - confidence)
    return risk.sparsest(mask, cuts.kept_ratio.mean(dim=0)) or 0


def better_rule(cuts: Mapping[str, Cuts], max_loss: float) -> str:
    """The rule that keeps least while no more is lost than allowed, as far as these graphs show.

    No promise: a rule is chosen by other graphs than its setting. The first of equal ones is taken.
    """

    def kept(name: str) -> float:
        found = cuts[name]
        lost = found.losses.cummax(dim=-1).values.double().mean(dim=0)
        return float(found.kept_ratio.mean(dim=0)[lost <= max_loss].min())

    return min(cuts, key=kept)


def share_rule(
    elements: Elements, values: Float[Tensor, " elements"]
) -> Bool[Tensor, "settings elements"]:
    """The same share of every graph: its best-scored elements, at least one."""
    ties = scattered(place_within(elements.owner, elements.batch.num_graphs))
    wanted = (rounded_up(share * elements.count) for share in SHARES)
    return torch.stack([largest(values, elements.owner, number, ties) for number in wanted])


def threshold_rule(values: Float[Tensor, " elements"]) -> Rule:
    """Scores of at least one threshold for all graphs, and the best elements of a graph.

    Args:
        values: Scores of graphs that set the thresholds, so that the shares are kept of them all
            together.
    """
    places = torch.tensor(SHARES, device=values.device, dtype=torch.float64)
    ranked = values.sort(descending=True).values
    last = (places * len(ranked)).ceil().long().clamp(min=1) - 1
    thresholds = ranked[last] if len(ranked) else values.new_zeros(len(SHARES))
    thresholds[0] = -torch.inf  # graphs to come may have lower scores

    def kept(elements: Elements, values: Tensor) -> Tensor:
        none = values.new_full((elements.batch.num_graphs,), -torch.inf)
        best = none.scatter_reduce(0, elements.owner, values, "amax")[elements.owner]
        return (values >= thresholds[:, None]) | (values == best)

    return kept


@torch.no_grad()
def ordered_cuts(
    classifier: Classifier, graphs: GraphStore, removal: Removal, scores: Scores, rule: Rule
) -> Cuts:
    """What a classifier predicts from graphs that are cut in the order of scores."""
    classifier.eval()
    predicted, ratios = [], []
    for index in torch.arange(len(graphs)).split(EVALUATION_BATCH):
        elements = Elements.of(graphs.batch(index), removal)
        values = elements.fill_protected(element_values(scores, graphs, index, elements), torch.inf)
        removed = ~rule(elements, values)
        ratios.append(elements.kept_ratio(removed).T)
        parts = (elements.subgraph(setting).batch for setting in removed)
        predicted.append(torch.stack([classifier.logits(part).argmax(-1) for part in parts], 1))
    return Cuts(torch.cat(predicted).cpu(), torch.cat(ratios).cpu(), graphs.y.cpu())


def dial_cuts(model: SparseClassifier, graphs: GraphStore) -> Cuts:
    """What a model predicts as its dial turns from the full graph to its sparsest setting."""
    full = predict_full(model, graphs).argmax(dim=-1)  # [B]
    found = predict_settings(model, graphs.view(), SETTINGS[::-1])
    whole = torch.ones_like(found.kept_ratio[:1])
    return Cuts(
        torch.cat([full[None], found.probs.argmax(dim=-1)]).T.cpu(),
        torch.cat([whole, found.kept_ratio]).T.cpu(),
        graphs.y.cpu(),
    )


def rules_of(scores: Scores, removal: Removal) -> dict[str, Rule]:
    """The ways to cut, with thresholds from the scores of graphs that choose between them."""
    values = scores.nodes if removal == "node" else scores.edges
    return {"share": share_rule, "threshold": threshold_rule(values)}
