"""Where the policy starts: what the removal of each element costs, learnt from random masks.

Deviation D19: the paper's policy starts with the same probability for every element, and PPO has to
find out by trial which of them matter. What a referee loses without an element can be learnt before
that, by least squares and from far fewer predictions, as FastSHAP learns Shapley values.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_

from cores.graphs.masks import smooth_masks
from cores.graphs.shares import of_graphs
from cores.graphs.subgraphs import Elements
from cores.models.policy import Policy
from cores.training.learner import Learner
from cores.training.optimizer import adam
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
    optimizer = adam(policy.parameters(), LEARNING_RATE)
    schedule = Cosine(optimizer, steps, 0.0)
    for number in range(steps):
        referee = referees[number % len(referees)]
        index = drawn(referee.policy_graphs, GRAPHS, random, balanced)
        elements = Elements.of(referee.policy_graphs.store.batch(index), policy.removal)
        batch = elements.batch
        if policy.lam is not None:
            batch.lam = torch.rand(batch.num_graphs, device=batch.x.device)
        removed = random_masks(elements)
        cost = removal_cost(referee, elements, removed)
        effects = (policy.start - policy(batch)) / LOGITS_PER_NAT  # [M]
        optimizer.zero_grad()
        mse_loss(elements.sum(effects * removed), cost).backward()
        clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        schedule.step(0.0)
    with torch.no_grad():
        policy.stretch(policy(batch), SPREAD)


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
