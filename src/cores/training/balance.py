"""Rare classes: all classes count as equally frequent, where one has nearly all the graphs.

Deviation D15: the reward of Eq. (7) is a mean over graphs. Where guessing the frequent class is
right nine times out of ten, removing nearly everything pays, and the rare class is lost.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from jaxtyping import Int, Num
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores.config import TrainingConfig
from cores.config.spec import TaskName
from cores.graphs.batches import cut
from cores.graphs.store import GraphStore
from cores.tasks import TASKS

MAJORITY = 0.8
"""``auto`` balances where one class has more than this share of the training part."""


def settled(
    config: TrainingConfig, labels: Num[Tensor, "graphs *labels"], task: TaskName
) -> TrainingConfig:
    """The settings with "auto" replaced by what it means for these training graphs."""
    if config.balance != "auto":
        return config
    rare = TASKS[task].largest_class(labels) > MAJORITY
    return replace(config, balance="always" if rare else "never")


@torch.no_grad()
def adjust_logits(head: nn.Linear, labels: Int[Tensor, " graphs"], amount: float) -> None:
    """Take the frequencies of the classes out of the logits of a layer that was trained on them.

    Menon et al., Long-tail learning via logit adjustment (2021): the largest logit less the
    logarithm of the class's frequency is the choice that errs least in the mean over the classes.
    The layer can be trained on graphs as they come: batches with as many of each class would show
    it the few graphs of a rare one again and again.

    >>> head = nn.Linear(1, 2)
    >>> _ = head.bias.detach().zero_()
    >>> adjust_logits(head, torch.tensor([0, 0, 0, 1]), amount=1.0)
    >>> head.bias.detach().exp()  # what is unknown is each class with the same probability
    tensor([1.3333, 4.0000])
    """
    counts = torch.bincount(labels, minlength=head.out_features).clamp(min=1)
    head.bias.sub_(amount * (counts / counts.sum()).log().to(head.bias))


def balanced_order(
    labels: Int[Tensor, " graphs"], size: int, generator: torch.Generator
) -> Int[Tensor, " size"]:
    """Sample ``size`` graphs in random order, every class equally often (to one graph).

    A class with fewer graphs than its share has each of them several times, as evenly as possible.

    >>> order = balanced_order(torch.tensor([0] * 9 + [1]), 6, torch.Generator().manual_seed(0))
    >>> (order == 9).sum()
    tensor(3)
    """
    labels = labels.cpu()
    classes = labels.unique()
    classes = classes[torch.randperm(len(classes), generator=generator)]  # who gets the odd one
    chosen = []
    for place, label in enumerate(classes):
        graphs = (labels == label).nonzero().squeeze(1)
        share = (size - place + len(classes) - 1) // len(classes)
        rounds = -(-share // len(graphs))
        drawn = [graphs[torch.randperm(len(graphs), generator=generator)] for _ in range(rounds)]
        chosen.append(torch.cat([graphs[:0], *drawn])[:share])
    joined = torch.cat(chosen)
    return joined[torch.randperm(len(joined), generator=generator)]


def shuffled_chunks(
    graphs: GraphStore, batch_size: int, generator: torch.Generator, balanced: bool
) -> Iterator[Batch]:
    """An epoch of training graphs, in chunks to be cut into batches.

    Every graph once; balanced, as many, every class as often. Drawn rather than weighted in the
    loss: weights of 10 make single batches loud.
    """
    if balanced:
        order = balanced_order(graphs.y, len(graphs), generator)
    else:
        order = torch.randperm(len(graphs), generator=generator)
    yield from graphs.in_order(order, batch_size)


def shuffled_batches(
    graphs: GraphStore, batch_size: int, generator: torch.Generator, balanced: bool
) -> Iterator[Batch]:
    """Sample an epoch of batches, likewise."""
    for chunk in shuffled_chunks(graphs, batch_size, generator, balanced):
        yield from cut(chunk, batch_size)
