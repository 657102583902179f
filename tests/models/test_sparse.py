"""The parts that a small model shows, against all parts of its graphs."""

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.config import ExplanationConfig, Reach, Removal, RunConfig
from cores.config.spec import TaskName
from cores.data.dataset import Dims
from cores.data.nodes import from_nodes
from cores.graphs.batches import as_batch
from cores.graphs.components import count_pieces, subgraph_pieces
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements, roots_of
from cores.models.build import build_effects, build_model
from cores.models.network import Prediction
from cores.models.sparse import PartQuestions, SparseClassifier
from cores.parts import TIE

REMOVALS: list[Removal] = ["node", "edge", "both"]
FEATURES = 4
SHARP = {"classification": 6.0, "multilabel": 6.0, "regression": 2.0}
"""Scale of the members' last layers: their predictions differ from part to part."""


def model_of(
    removal: Removal,
    task: TaskName = "classification",
    dims: Dims | None = None,
    **settings: Any,
) -> SparseClassifier:
    """A model with drawn weights, whose committee changes its mind from part to part."""
    torch.manual_seed(3)
    config = RunConfig.from_settings(
        {
            "model": f"cores-{removal}",
            "network": {"hidden_dim": 8, "num_layers": 2},
            "committee": {"members": 2},
            **settings,
        }
    )
    model = build_model(config, dims or Dims(FEATURES, 0 if task == "regression" else 2, task=task))
    assert isinstance(model, SparseClassifier)
    for name, head in model.policy.named_children():
        if name.endswith("_head"):
            torch.nn.init.normal_(head.weight)
    for member in model.classifier.members:
        torch.nn.init.normal_(member.head.weight, std=SHARP[task] / 8**0.5)
    if task == "regression":
        model.classifier.head.tolerance.fill_(0.5)
    return model.eval()


def graphs_of(count: int = 12, seed: int = 0) -> GraphStore:
    """Random connected graphs of three to five nodes with random features."""
    random = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(count):
        nodes = int(torch.randint(3, 6, (1,), generator=random))
        tree = [
            (int(torch.randint(place, (1,), generator=random)), place) for place in range(1, nodes)
        ]
        ends = torch.tensor([*tree, (0, nodes - 1)]).T
        edges = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
        graphs.append(
            Data(
                x=torch.randn(nodes, FEATURES, generator=random),
                edge_index=edges,
                y=torch.zeros(1).long(),
            )
        )
    return GraphStore.from_graphs(graphs)


def shows(
    model: SparseClassifier, graphs: GraphStore, index: list[int] | None = None, **shown: Any
) -> Prediction:
    chosen = torch.arange(len(graphs)) if index is None else torch.tensor(index)
    with torch.no_grad():
        return model.showing(ExplanationConfig(**shown)).prediction(graphs.batch(chosen))


@torch.no_grad()
def support(model: SparseClassifier, graph: Batch, removed: Tensor, told: Tensor) -> float:
    """Support of one graph's part, by a forward pass of its own; minus infinity for no part."""
    elements = Elements.of(graph, model.policy.removal)
    subgraph = elements.subgraph(removed).batch
    if model.policy.removal != "edge" and not len(subgraph.x):
        return -torch.inf
    if model.policy.max_pieces and int(count_pieces(elements, removed)) > model.policy.max_pieces:
        return -torch.inf
    outputs = model.outputs(model.classifier.logits(subgraph))[0]
    if model.task == "regression":
        return -float((outputs - told).abs()) / model.classifier.head.known_tolerance
    if model.task == "multilabel":
        side = float(torch.where(told > 0.5, outputs, 1 - outputs).min())
        return side if side >= 0.5 else side - 1
    own = float(outputs[told.argmax()])
    return own if own >= float(outputs.max()) - TIE else own - 1


def removed_of(found: Prediction, batch: Batch, removal: Removal) -> Tensor:
    """The removed elements of a batch of one graph."""
    elements = Elements.of(batch, removal)
    edges = found.subgraph.removed_edges
    if removal == "node":
        return found.subgraph.removed_nodes
    pairs = torch.ones(elements.batch.pair_index.size(1), dtype=torch.bool)
    pairs[elements.batch.edge_pair[~edges]] = False
    return pairs if removal == "edge" else torch.cat([found.subgraph.removed_nodes, pairs])


@cache
def found_for(removal: Removal, task: TaskName, tau: float) -> tuple[SparseClassifier, list[Any]]:
    graphs, model = graphs_of(), model_of(removal, task)
    return model, [
        (graphs.batch(torch.tensor([number])), shows(model, graphs, [number], sufficiency=tau))
        for number in range(len(graphs))
    ]


CASES = [
    *product(REMOVALS, ["classification"], [0.5, 0.8]),
    ("node", "multilabel", 0.6),
    ("node", "regression", 0.8),
    ("both", "regression", 0.8),
]


@pytest.mark.parametrize(("removal", "task", "tau"), CASES)
def test_parts_are_sufficient_and_no_single_element_can_go(
    removal: Removal, task: TaskName, tau: float
) -> None:
    model, found = found_for(removal, task, tau)
    wanted = -1.0 if task == "regression" else tau
    weak = proper = 0
    for batch, prediction in found:
        told, part = prediction.probs[0], prediction.part
        everything = Elements.of(batch, removal)
        nothing = torch.zeros_like(everything.owner, dtype=torch.bool)
        least = min(wanted, support(model, batch, nothing, told))
        assert bool(part.weak) == (least < wanted - TIE)
        assert bool(part.minimal)
        removed = removed_of(prediction, batch, removal)
        own = support(model, batch, removed, told)
        assert own >= least - 2 * TIE
        if task == "regression":
            with torch.no_grad():
                number = model.classifier.logits(prediction.subgraph.batch)[0, 0]
            assert float(part.probability) == pytest.approx(float(number), abs=1e-5)
        else:
            assert float(part.probability) == pytest.approx(own, abs=1e-5)
        for element in (~removed).nonzero().flatten().tolist():
            without = removed.clone()
            without[element] = True
            ends = everything.batch.pair_index if removal == "both" else None
            if ends is not None and element < len(batch.x):  # its edges go with it
                without[len(batch.x) :] |= (ends == element).any(dim=0)
            assert support(model, batch, without, told) < least
        weak += bool(part.weak)
        proper += bool(removed.any())
    assert proper > len(found) / 2, "the model's parts must be worth a test"
    assert weak < len(found)


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_part_is_the_same_alone_and_in_a_batch_and_in_any_order_of_nodes(
    removal: Removal,
) -> None:
    graphs, model = graphs_of(), model_of(removal)
    together = shows(model, graphs)
    first_node, first_edge = graphs.node_ptr.tolist(), graphs.edge_ptr.tolist()
    for number in range(len(graphs)):
        alone = shows(model, graphs, [number])
        nodes = slice(first_node[number], first_node[number + 1])
        edges = slice(first_edge[number], first_edge[number + 1])
        assert torch.equal(alone.subgraph.removed_nodes, together.subgraph.removed_nodes[nodes])
        assert torch.equal(alone.subgraph.removed_edges, together.subgraph.removed_edges[edges])
        assert int(alone.part.questions) == int(together.part.questions[number])
        graph = graphs.graph(number)
        turned = torch.randperm(len(graph.x), generator=torch.Generator().manual_seed(number))
        place = turned.argsort()  # where each node went
        other = Data(x=graph.x[turned], edge_index=place[graph.edge_index], y=graph.y)
        found = shows(model, GraphStore.from_graphs([other]))
        assert torch.equal(found.subgraph.removed_nodes, alone.subgraph.removed_nodes[turned])
        assert torch.equal(found.subgraph.removed_edges, alone.subgraph.removed_edges)


@pytest.mark.parametrize("parts", ["policy", "cut", "minimal"])
@pytest.mark.parametrize("removal", ["node", "both"])
def test_a_class_from_the_part_sees_nothing_of_what_the_policy_removes(
    removal: Removal, parts: str
) -> None:
    graphs, model = graphs_of(), model_of(removal)
    with torch.no_grad():
        choice = model.choose(graphs.batch(torch.arange(len(graphs))))
    gone = choice.subgraph.removed_nodes
    assert 0 < int(gone.sum()) < len(gone)
    # What the policy decides stays: it is put in place of the one that looks at the features.
    model.choose = lambda batch, sample=False: replace(  # type: ignore[method-assign]
        choice,
        elements=Elements.of(batch, removal),
        subgraph=Elements.of(batch, removal).subgraph(choice.removed),
    )
    changed = replace(graphs, x=torch.where(gone[:, None], 9.0 - graphs.x, graphs.x))
    one, other = (shows(model, each, class_from="part", parts=parts) for each in (graphs, changed))
    assert torch.equal(one.probs, other.probs)
    assert torch.equal(one.subgraph.removed_nodes, other.subgraph.removed_nodes)
    assert torch.equal(one.subgraph.removed_edges, other.subgraph.removed_edges)
    for name, values in vars(one.part).items():
        assert torch.equal(values, vars(other.part)[name]), name
    assert bool((gone <= one.subgraph.removed_nodes).all()), "no more is shown than was seen"
    whole = shows(model, changed, class_from="whole", parts=parts)
    assert not torch.allclose(whole.probs, one.probs)


@pytest.mark.parametrize("class_from", ["whole", "part"])
@pytest.mark.parametrize("proposer", ["policy", "effects"])
@pytest.mark.parametrize("removal", REMOVALS)
def test_a_rooted_graph_keeps_its_root(removal: Removal, proposer: str, class_from: str) -> None:
    random = torch.Generator().manual_seed(0)
    ends = torch.randint(30, (2, 60), generator=random)
    whole = Data(
        x=torch.randn(30, 3, generator=random),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1),
        y=torch.arange(30) % 2,
    )
    dataset = from_nodes(whole, reach=Reach(2, 3))
    # Probabilities of 0 and 1 are ties with the root's.
    model = model_of(removal, dims=dataset.dims, ppo={"min_probability": 0.0})
    for name, head in model.policy.named_children():
        if name.endswith("_head"):
            torch.nn.init.constant_(head.bias, -100.0)
    config = RunConfig.from_settings({"model": f"cores-{removal}", "network": {"hidden_dim": 8}})
    model.effects = build_effects(config, dataset.dims, model.scaler)
    for weights in model.effects.parameters():
        torch.nn.init.normal_(weights)
    batch = dataset.graphs.batch(torch.arange(len(dataset.graphs)))
    found = shows(model, dataset.graphs, proposer=proposer, class_from=class_from, sufficiency=0.5)
    assert not bool(found.subgraph.removed_nodes[roots_of(batch)].any())
    assert bool(found.subgraph.removed_edges.any())
    assert bool(found.part.minimal.all())


@pytest.mark.parametrize("parts", ["policy", "cut", "minimal"])
@pytest.mark.parametrize("removal", REMOVALS)
def test_no_part_has_more_pieces_than_may_be_left(removal: Removal, parts: str) -> None:
    """Of a graph in two pieces, too."""
    one = graphs_of(seed=1)
    twins = [
        Data(
            x=torch.cat([first.x, second.x]),
            edge_index=torch.cat([first.edge_index, second.edge_index + len(first.x)], dim=1),
            y=first.y,
        )
        for first, second in zip(one.to_graphs()[::2], one.to_graphs()[1::2], strict=True)
    ]
    graphs = GraphStore.from_graphs([*one.to_graphs(), *twins])
    free = model_of(removal)
    model = model_of(removal, reward={"max_pieces": 1})
    pieces = [
        subgraph_pieces(shows(each, graphs, parts=parts).subgraph.batch, removal)
        for each in (free, model)
    ]
    assert parts == "minimal" or int(pieces[0].max()) > 1
    assert int(pieces[1].max()) <= 1


def test_an_edge_is_proposed_after_its_ends() -> None:
    """Every prefix of the order is a subgraph: a cut has edges between the nodes it keeps."""
    graphs, model = graphs_of(), model_of("both")
    for number in range(len(graphs)):
        batch = graphs.batch(torch.tensor([number]))
        found = shows(model, graphs, [number], parts="cut")
        kept = ~found.subgraph.removed_nodes
        if bool(kept.all()):
            continue
        ends = batch.edge_index[:, ~found.subgraph.removed_edges]
        assert bool(kept[ends].all())
    batch = graphs.batch(torch.arange(len(graphs)))
    with torch.no_grad():
        choice = model.choose(batch)
        whole = model.showing(ExplanationConfig())
        questions = PartQuestions(whole, choice, whole.outputs(whole.logits(batch)))
    order = questions.units.order
    place = order[questions.unit]
    nodes, pairs = place[: len(batch.x)], place[len(batch.x) :]
    assert bool((pairs > nodes[choice.elements.batch.pair_index].amax(dim=0)).all())


def test_smaller_parts_take_more_questions_and_all_begin_with_the_class() -> None:
    graphs, model = graphs_of(), model_of("node")
    found = {parts: shows(model, graphs, parts=parts) for parts in ("policy", "cut", "minimal")}
    kept = {
        name: float((~each.subgraph.removed_nodes).float().mean()) for name, each in found.items()
    }
    asked = {name: float(each.part.questions.float().mean()) for name, each in found.items()}
    assert asked["policy"] == 1 < asked["cut"] < asked["minimal"]
    assert kept["minimal"] <= kept["cut"]
    assert torch.equal(found["cut"].probs, found["minimal"].probs)


def test_plain_tensors_are_asked_about_like_a_store() -> None:
    graphs, model = graphs_of(count=1), model_of("edge")
    graph = graphs.graph(0)
    with torch.no_grad():
        found = model.showing(ExplanationConfig()).prediction(as_batch(graph.x, graph.edge_index))
    assert torch.equal(found.subgraph.removed_edges, shows(model, graphs).subgraph.removed_edges)
