"""Effects of removing elements, fitted to random masks by least squares.

The policy starts from it. Deviation D19: the paper's policy starts with the same probability for
every element, and PPO has to find out by trial which of them matter. What a member loses without
an element can be learnt before that from far fewer predictions, as FastSHAP learns Shapley values.

And a network of its own keeps it, for users to see (Deviation D25): PPO leaves the order among the
elements that its reward does not ask for to chance, a part of a ring that is enough to tell a ring.
"""

from collections.abc import Callable, Sequence
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
from cores.models.elements import EffectNetwork, ElementNetwork
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
    """Random masks of some graphs, and what each costs a member."""

    elements: Elements
    removed: Float[Tensor, " elements"]
    """1 where the mask removes, else 0."""
    cost: Float[Tensor, " graphs"]

    def packed(self) -> Batch:
        """Pack into a batch, whose labels are the costs and whose elements have the mask."""
        batch = copy(self.elements.batch)
        batch.y = self.cost
        batch[element_values(self.elements.removal)] = self.removed[:, None]
        return batch

    @classmethod
    def unpacked(cls, batch: Batch, removal: Removal) -> "MaskCosts":
        """Unpack a batch."""
        return cls(Elements.of(batch, removal), batch[element_values(removal)][:, 0], batch.y)


Estimate = Callable[[Batch], Float[Tensor, " elements"]]
"""Returns the effect of every element, by a network."""
Cost = Callable[[Learner, Elements, Bool[Tensor, " elements"]], Float[Tensor, " graphs"]]
"""Returns the cost of a mask to a member."""


def fit_effects(
    policy: Policy,
    members: Sequence[Learner],
    steps: int,
    random: RandomState,
    balanced: bool = False,
) -> None:
    """Let the policy remove those elements first whose removal costs a member least.

    The logits are fitted so that the sum of the removed elements' effects is what a random mask
    costs, in nats, then stretched around the mean with which the policy starts.
    """

    def effects(batch: Batch) -> Float[Tensor, " elements"]:
        return (policy.start - policy(batch)) / LOGITS_PER_NAT

    costs = _fit(policy, effects, members, steps, random, balanced, nats_lost)
    with torch.no_grad():
        policy.stretch(policy(costs.elements.batch), SPREAD)


def learn_effects(
    network: EffectNetwork,
    members: Sequence[Learner],
    steps: int,
    random: RandomState,
    balanced: bool = False,
    done: Callable[[int], None] = lambda steps: None,
) -> None:
    """Fit a network's effects, so that their sum over a random mask is what the mask changes.

    In probability, not in nats: few masks that turn a sure prediction into its opposite would
    decide what is learnt. ``done`` is called with the number of steps so far.
    """
    _fit(network, network, members, steps, random, balanced, probability_lost, done)


def _fit(
    network: ElementNetwork,
    estimate: Estimate,
    members: Sequence[Learner],
    steps: int,
    random: RandomState,
    balanced: bool,
    cost: Cost,
    done: Callable[[int], None] = lambda steps: None,
) -> MaskCosts:
    """Gradient steps, each on masks of graphs that another member was not trained on."""
    on_gpu = next(network.parameters()).is_cuda and ranks.current() is None
    kind = RecordedEffectSteps if on_gpu and fixed_shapes(network) else EffectSteps
    fit = kind(network, estimate, steps)
    turns = [members[number % len(members)] for number in range(steps)]
    for first in range(0, steps, fit.at_once):
        now = turns[first : first + fit.at_once]
        for member in dict.fromkeys(now):
            graphs = member.policy_graphs
            index = [drawn(graphs, GRAPHS, random, balanced) for _ in range(now.count(member))]
            costs = mask_costs(network, member, torch.cat(index), cost)
            fit.run(costs, len(index[0]))
        done(first + len(now))
    return costs


@torch.no_grad()
def mask_costs(
    network: ElementNetwork, member: Learner, index: Int[Tensor, " graphs"], cost: Cost
) -> MaskCosts:
    """A random mask of each of these graphs, and what it costs."""
    elements = Elements.of(member.policy_graphs.store.batch(index), network.removal)
    removed = random_masks(elements)
    return MaskCosts(elements, removed.float(), cost(member, elements, removed))


def effect_loss(estimate: Estimate, costs: MaskCosts) -> Float[Tensor, ""]:
    """Squared error of the removed elements' effects, whose sum is to be the cost of a mask."""
    elements = costs.elements
    effects = estimate(elements.batch)  # [M]
    errors = mse_loss(elements.sum(effects * costs.removed), costs.cost, reduction="none")
    real = elements.batch.get("unpadded_graphs")
    return errors.mean() if real is None else (errors * real).sum() / real.sum()


class EffectSteps:
    """Gradient steps that fit effects to what masks cost.

    Args:
        network: Whose weights are fitted.
        estimate: The effects by this network.
        steps: How many there will be.
    """

    at_once = 1
    """Steps whose masks are drawn together."""

    def __init__(self, network: ElementNetwork, estimate: Estimate, steps: int) -> None:
        self.network = network
        self.estimate = estimate
        self.optimizer = adam(network.parameters(), LEARNING_RATE)
        self.schedule = Cosine(self.optimizer, steps, 0.0)

    def run(self, costs: MaskCosts, graphs: int) -> None:
        """A step for every so many graphs, which here are all."""
        self.step(costs)
        self.schedule.step(0.0)

    def step(self, costs: MaskCosts) -> None:
        """One gradient step."""
        self.optimizer.zero_grad()
        effect_loss(self.estimate, costs).backward()
        clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()


class RecordedEffectSteps(EffectSteps):
    """Fit on a GPU: a step is recorded once and replayed, on padded batches."""

    at_once = 45

    def __init__(self, network: ElementNetwork, estimate: Estimate, steps: int) -> None:
        super().__init__(network, estimate, steps)
        self._recorded = RecordedSteps(self._on_batch, next(network.parameters()).device)

    def run(self, costs: MaskCosts, graphs: int) -> None:
        """A step for every so many graphs."""
        for _ in range(self._recorded.load([Chunk.of(costs.packed(), graphs)])):
            self._recorded()
            self.schedule.step(0.0)

    def _on_batch(self, batch: Batch) -> None:
        self.step(MaskCosts.unpacked(batch, self.network.removal))


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


def nats_lost(
    member: Learner, elements: Elements, removed: Bool[Tensor, " elements"]
) -> Float[Tensor, " graphs"]:
    """Loss of the member's prediction from the full graph; of classes, in nats."""
    return member.classifier.head.lost(*_full_and_part(member, elements, removed))


def probability_lost(
    member: Learner, elements: Elements, removed: Bool[Tensor, " elements"]
) -> Float[Tensor, " graphs"]:
    """Loss in probability; of a number, how much it falls, in deviations."""
    return member.classifier.head.effect(*_full_and_part(member, elements, removed))


@torch.no_grad()
def _full_and_part(
    member: Learner, elements: Elements, removed: Bool[Tensor, " elements"]
) -> tuple[Tensor, Tensor]:
    """Predict from the full graphs and from the masked ones."""
    full = of_graphs(member.classifier, elements.batch)
    return full, of_graphs(member.classifier, elements.subgraph(removed).batch)
