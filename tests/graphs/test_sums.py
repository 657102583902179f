"""Sums along edges in one pass are, bit by bit, those of rows that are gathered and added."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import remove_edges, remove_nodes
from cores.graphs.sums import FEW_EDGES, EdgeSums, edge_sums, with_sums
from cores_paper.benchmark import nci1_like_graphs

NODES = 40


def random_edges(number: int, seed: int = 0) -> Tensor:
    """In no order, some several times, with loops; the last nodes have none."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(NODES - 5, (2, number), generator=generator)


def neighbours(edges: Tensor) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def plainly(h: Tensor) -> Tensor:
        return h.index_add(0, edges[1], h.index_select(0, edges[0]))

    return EdgeSums(edges, NODES).of_neighbours, plainly


def messages(edges: Tensor) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def plainly(h: Tensor, features: Tensor) -> Tensor:
        return h.index_add(0, edges[1], torch.relu(h.index_select(0, edges[0]) + features))

    return EdgeSums(edges, NODES).of_messages, plainly


def ends(edges: Tensor) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def plainly(h: Tensor) -> Tensor:
        return h.index_select(0, edges[0]) + h.index_select(0, edges[1])

    return EdgeSums(edges, NODES).of_ends, plainly


KINDS = {"neighbours": neighbours, "messages": messages, "ends": ends}


def inputs(kind: str, number: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    torch.manual_seed(1)
    sizes = [NODES, number] if kind == "messages" else [NODES]
    return [torch.randn(size, 5, dtype=dtype, requires_grad=True) for size in sizes]


@pytest.mark.parametrize("number", [0, 1, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_and_gradients_are_the_same_bits(kind: str, number: int) -> None:
    found, rows = [], inputs(kind, number)
    for way in KINDS[kind](random_edges(number)):
        result = way(*rows)
        weights = torch.linspace(-1, 1, result.numel()).view_as(result)
        found.append([result, *torch.autograd.grad((result * weights).sum(), rows)])
        with torch.no_grad():
            found[-1].append(way(*rows))
    assert all(torch.equal(ours, plain) for ours, plain in zip(*found, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_can_be_differentiated_twice(kind: str) -> None:
    ours, _ = KINDS[kind](random_edges(30))
    rows = inputs(kind, 30, torch.float64)
    assert gradcheck(ours, rows)
    assert gradgradcheck(ours, rows)


def graphs(number: int) -> GraphStore:
    return nci1_like_graphs(number, seed=0).with_pairs()


def test_few_edges_are_not_worth_preparing() -> None:
    edges = random_edges(FEW_EDGES + 1)
    assert edge_sums(edges, torch.ones(NODES, 1)) is not None
    assert edge_sums(edges[:, 1:], torch.ones(NODES, 1)) is None


def test_a_batch_keeps_its_sums_and_its_subgraphs_do_not() -> None:
    batch = graphs(40).batch(torch.arange(40))
    kept = with_sums(batch)
    assert {"edge_sums", "pair_sums"} <= set(kept.keys())
    assert not {"edge_sums", "pair_sums"} & set(batch.keys())
    assert kept.pair_sums.of_ends(batch.x).size(0) == batch.pair_index.size(1)
    for subgraph in (
        remove_nodes(kept, torch.arange(len(batch.x)) % 2 == 0),
        remove_edges(kept, torch.arange(batch.edge_index.size(1)) < 9),
    ):
        assert not {"edge_sums", "pair_sums"} & set(subgraph.keys())
