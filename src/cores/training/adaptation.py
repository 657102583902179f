"""Deviation D23: after the policy's training, the classifiers get to know its subgraphs.

Random masks resemble what a policy keeps, but not quite: its parts are those that tell most, and a
classifier that has seen some of them makes more of them. The policy is fixed by then, so that it
cannot learn to tell the classifier an answer by what it keeps.
"""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Bool
from torch import Tensor
from torch_geometric.data import Batch

from cores.graphs.masks import random_ratios, smooth_masks
from cores.graphs.shares import of_elements
from cores.graphs.subgraphs import Elements
from cores.models.policy import Policy

CHOSEN = 0.5
"""Share of the graphs of which the policy's subgraph is shown; of the others, a random part."""
FIRST_RATE = 1 / 3
"""Learning rate with which the classifiers go on, as a share of the initial one."""


def half_chosen(batches: Iterable[Batch], policy: Policy) -> Iterator[Batch]:
    """The batches with a part of every graph removed: at random, or by the policy's mode.

    Of a policy that sees lambda, at any value of it.
    """
    for batch in batches:
        elements = Elements.of(batch, policy.removal)
        by_policy = torch.rand(batch.num_graphs, device=elements.owner.device) < CHOSEN
        at_random = smooth_masks(elements, random_ratios(elements))
        removed = torch.where(by_policy[elements.owner], _mode(elements, policy), at_random)
        yield elements.subgraph(removed).batch


@torch.no_grad()
def _mode(elements: Elements, policy: Policy) -> Bool[Tensor, " elements"]:
    if policy.lam is None:
        return policy.mode(elements, of_elements(policy, elements))
    batch = elements.batch
    batch.lam = torch.rand(batch.num_graphs, device=batch.x.device)
    removed = policy.mode(elements, of_elements(policy, elements))
    del batch.lam  # no classifier sees it
    return removed
