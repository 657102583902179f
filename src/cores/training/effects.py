"""Where the policy starts: what the removal of each element costs, learnt from random masks.

Deviation D19: the paper's policy starts with the same probability for every element, and PPO has to
find out by trial which of them matter. What a referee loses without an element can be learnt before
that, by least squares and from far fewer predictions, as FastSHAP learns Shapley values.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_
from torch_geometric.data import Batch

from cores import ranks
from cores.config import Removal
from cores.graphs.masks import smooth_masks
from cores.graphs.shares import of_graphs
from cores.graphs.stacked import Chunk, element_values
from cores.graphs.subgraphs import Elements
from cores.models.policy import Policy
from cores.training.learner import Learner
from cores.training.optimizer import adam
from cores.training.recorded import RecordedSteps, fixed_shapes
from cores.training.rollouts import drawn
from cores.training.schedule import Cosine
from cores.training.state import RandomState

GRAPHS = 192
"""Most graphs of a gradient step."""
LEARNING_RATE = 3e-3
LOGITS_PER_NAT = 10.0
"""How far a logit is from its start, where the removal costs one nat: a tenth of one is much."""
SPREAD = 1.5
"""Standard deviation of the logits in the end: probabilities between 0.1 and 0.6 are common then,
and none is beyond what PPO can change."""


@dataclass(frozen=True)
class MaskCosts:
    """Random masks of some graphs, and what each costs a referee."""

    elements: Elements
    removed: Float[Tensor, " elements"]
    """1 where the mask removes, else 0."""
    cost: Float[Tensor, " graphs"]

    def packed(self) -> Batch:
        """As a batch, whose labels are the costs and whose elements have the mask."""
        batch = copy(self.elements.batch)
        batch.y = self.cost
        batch[element_values(self.elements.removal)] = self.removed[:, None]
        return batch

    @classmethod
    def unpacked(cls, batch: Batch, removal: Removal) -> "MaskCosts":
        """What a batch holds."""
        return cls(Elements.of(batch, removal), batch[element_values(removal)][:, 0], batch.y)


def fit_effects(
    policy: Policy,
    referees: Sequence[Learner],
    steps: int,
    random: RandomState,
    balanced: bool = False,
) -> None:
    """Let the policy remove those elements first whose removal costs a referee least.

    The logits are fitted so that the sum of the removed elements' effects is what a random mask
    costs, then stretched around the mean with which the policy starts.
    """
    on_gpu = next(policy.parameters()).is_cuda and ranks.current() is None
    fit = (RecordedEffects if on_gpu and fixed_shapes(policy) else Effects)(policy, steps)
    turns = [referees[number % len(referees)] for number in range(steps)]
    for first in range(0, steps, fit.at_once):
        now = turns[first : first + fit.at_once]
        for referee in dict.fromkeys(now):
            graphs = referee.policy_graphs
            index = [drawn(graphs, GRAPHS, random, balanced) for _ in range(now.count(referee))]
            costs = mask_costs(policy, referee, torch.cat(index))
            fit.run(costs, len(index[0]))
    with torch.no_grad():
        policy.stretch(policy(costs.elements.batch), SPREAD)


@torch.no_grad()
def mask_costs(policy: Policy, referee: Learner, index: Int[Tensor, " graphs"]) -> MaskCosts:
    """A random mask of each of these graphs, for a policy to learn from."""
    elements = Elements.of(referee.policy_graphs.store.batch(index), policy.removal)
    batch = elements.batch
    if policy.lam is not None:
        batch.lam = torch.rand(batch.num_graphs, device=batch.x.device)
    removed = random_masks(elements)
    return MaskCosts(elements, removed.float(), removal_cost(referee, elements, removed))


def effect_loss(policy: Policy, costs: MaskCosts) -> Float[Tensor, ""]:
    """Squared error of the removed elements' effects, whose sum is to be the cost of a mask."""
    elements = costs.elements
    effects = (policy.start - policy(elements.batch)) / LOGITS_PER_NAT  # [M]
    errors = mse_loss(elements.sum(effects * costs.removed), costs.cost, reduction="none")
    real = elements.batch.get("unpadded_graphs")
    return errors.mean() if real is None else (errors * real).sum() / real.sum()


class Effects:
    """Gradient steps that fit a policy's logits to what masks cost.

    Args:
        policy: The policy.
        steps: How many there will be.
    """

    at_once = 1
    """Steps whose masks are drawn together."""

    def __init__(self, policy: Policy, steps: int) -> None:
        self.policy = policy
        self.optimizer = adam(policy.parameters(), LEARNING_RATE)
        self.schedule = Cosine(self.optimizer, steps, 0.0)

    def run(self, costs: MaskCosts, graphs: int) -> None:
        """A step for every so many graphs, which here are all."""
        self.step(costs)
        self.schedule.step(0.0)

    def step(self, costs: MaskCosts) -> None:
        """One gradient step."""
        self.optimizer.zero_grad()
        effect_loss(self.policy, costs).backward()
        clip_grad_norm_(self.policy.parameters(), 1.0)
        self.optimizer.step()


class RecordedEffects(Effects):
    """The same on a GPU: a step is recorded once and replayed, on padded batches."""

    at_once = 45

    def __init__(self, policy: Policy, steps: int) -> None:
        super().__init__(policy, steps)
        self._recorded = RecordedSteps(self._on_batch, next(policy.parameters()).device)

    def run(self, costs: MaskCosts, graphs: int) -> None:
        """A step for every so many graphs."""
        for _ in range(self._recorded.load([Chunk.of(costs.packed(), graphs)])):
            self._recorded()
            self.schedule.step(0.0)

    def _on_batch(self, batch: Batch) -> None:
        self.step(MaskCosts.unpacked(batch, self.policy.removal))


@torch.no_grad()
def random_masks(elements: Elements) -> Bool[Tensor, " elements"]:
    """Removes anything between nothing and nearly all; smooth in one half of the graphs.

    In the other half every element has its own chance: neighbours that always go together could not
    be told apart.
    """
    graphs, device = elements.batch.num_graphs, elements.owner.device
    kept = torch.rand(graphs, device=device)
    chance = torch.rand(len(elements.owner), device=device)
    alone, _ = elements.restored(elements.removable(chance > kept[elements.owner]))
    smooth = (torch.arange(graphs, device=device) % 2 == 0)[elements.owner]
    return torch.where(smooth, smooth_masks(elements, kept), alone)


@torch.no_grad()
def removal_cost(
    referee: Learner, elements: Elements, removed: Bool[Tensor, " elements"]
) -> Float[Tensor, " graphs"]:
    """What a referee's prediction from the full graph loses; of classes, in nats."""
    full = of_graphs(referee.classifier, elements.batch)
    part = of_graphs(referee.classifier, elements.subgraph(removed).batch)
    return referee.classifier.head.lost(full, part)
