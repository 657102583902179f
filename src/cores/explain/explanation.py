"""Explanations of PyG's, with the kept part, the scores and the prediction behind it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.explain import ExplainerAlgorithm
from torch_geometric.explain import Explanation as PyGExplanation
from torch_geometric.explain.config import MaskType, ModelTaskLevel

from cores.config.spec import TaskName
from cores.errors import UserError
from cores.evaluation.effects import ElementEffects, element_effects
from cores.evaluation.predictions import Predictions, predict
from cores.explain.drawing import GraphDrawing, draw_graphs
from cores.explain.explained import marked_nodes, undirected
from cores.explain.plotting import figure_bytes
from cores.files import write_atomically
from cores.files.escape import figure as figure_text
from cores.graphs.batches import as_batch
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements
from cores.models.policy import Policy
from cores.models.sparse import keep_scores
from cores.runs.device import tuned_cpu
from cores.runs.trained import TrainedModel
from cores.tasks import TASKS


@dataclass(frozen=True)
class Verdict:
    """The prediction for one graph; the properties of :class:`Explanation` say more."""

    task: TaskName
    label: Any
    probabilities: NDArray[np.float32]
    labels_in_set: list[Any] | None
    interval: tuple[float, float] | None
    pieces: int | None = None
    part: tuple[float, bool, bool, int] | None = None
    """Probability, minimal, weak, questions; None where no committee was asked."""


class Explanation(PyGExplanation):
    """A graph, what the model kept of it, and what it predicts from that.

    The stored masks are 0.0 or 1.0, because PyG's metrics calculate with them; as attributes they
    are truth values. They, the scores and PyG's methods (``get_explanation_subgraph``,
    ``get_complement_subgraph``, ``validate``) refer to the nodes and directed edges of the graph.

    Attributes:
        node_score: How much the model wants to keep each node, in [0, 1] for CORES.
        edge_score: The same for each directed edge.
    """

    @property
    def node_effect(self) -> Tensor | None:
        """[N]: how much probability the prediction loses without each node.

        Effects add up, approximately. Of a predicted number they are in its unit, and what takes
        from it has a negative one. None where the model did not learn effects, or of edges alone.
        """
        return self.get("effect_of_nodes")

    @property
    def edge_effect(self) -> Tensor | None:
        """[E]: the effect of each directed edge; None where the model does not remove edges."""
        return self.get("effect_of_edges")

    @property
    def node_mask(self) -> Tensor:
        """[N, 1] bool: kept nodes."""
        return self["node_mask"] > 0

    @property
    def edge_mask(self) -> Tensor:
        """[E] bool: kept edges, both directions of an edge alike."""
        return self["edge_mask"] > 0

    @property
    def kept_nodes(self) -> list[int]:
        """Numbers of the kept nodes."""
        return self.node_mask.squeeze(-1).nonzero().flatten().tolist()

    @property
    def kept_edges(self) -> list[tuple[int, int]]:
        """Kept edges by their ends, each undirected edge once."""
        ends = self.edge_index[:, self.edge_mask].sort(dim=0).values
        return [(int(a), int(b)) for a, b in ends.unique(dim=1).t().tolist()]

    @property
    def node_ratio(self) -> float:
        """Share of the nodes that is kept."""
        return float(self["node_mask"].mean())

    @property
    def edge_ratio(self) -> float:
        """Share of the edges that is kept; 1 for a graph without edges."""
        return float(self["edge_mask"].mean()) if self.num_edges else 1.0

    @property
    def pieces(self) -> int | None:
        """Connected pieces of the kept part; where only edges are removed, those with an edge."""
        return self["verdict"].pieces

    @property
    def prediction(self) -> Any:
        """The predicted label, as labels were given for training; or the predicted number.

        A list where graphs have several labels.
        """
        return self["verdict"].label

    @property
    def correct(self) -> bool | None:
        """True if the prediction is the true class; None where that is not known."""
        if self.get("y") is None:
            return None
        return TASKS[self["verdict"].task].correct(self.target, self.y)

    @property
    def probabilities(self) -> NDArray[np.float32]:
        """Probability of every class, in the order of ``classes_``.

        Where graphs have several labels, the probability of the second value of each.
        """
        return self["verdict"].probabilities

    @property
    def prediction_set(self) -> list[Any] | None:
        """Labels in the prediction set; None where the model was not calibrated.

        Where graphs have several labels, a list of values for each.
        """
        return self["verdict"].labels_in_set

    @property
    def part_probability(self) -> float | None:
        """What the committee gives the prediction from the part alone; of numbers, its own.

        None, like the next three, for a model without a committee.
        """
        return self._of_part(0)

    @property
    def minimal(self) -> bool | None:
        """Whether no single unit of the part can go: each was tried."""
        return self._of_part(1)

    @property
    def weak(self) -> bool | None:
        """Whether what the search began with is not as sure as was asked for."""
        return self._of_part(2)

    @property
    def questions(self) -> int | None:
        """Parts that the committee was asked about."""
        return self._of_part(3)

    def _of_part(self, place: int) -> Any:
        part = self["verdict"].part
        return None if part is None else part[place]

    @property
    def interval(self) -> tuple[float, float] | None:
        """Lower and upper end around a predicted number; None where there is none."""
        return self["verdict"].interval

    def visualize_graph(
        self,
        path: str | Path | None = None,
        backend: str | None = None,
        node_labels: list[str] | None = None,
    ) -> None:
        """Draw the graph with the kept part highlighted, to a file or on the screen.

        Args:
            path: A file by its ending (.png, .svg, .pdf); None shows it.
            backend: ``"graphviz"`` draws the kept part alone with PyG's drawing by graphviz.
            node_labels: What to write on the nodes.
        """
        if backend == "graphviz":
            kept = self.get_explanation_subgraph()
            PyGExplanation.visualize_graph(kept, path, backend, node_labels)
            return
        from matplotlib.figure import Figure

        predicted, drawing = self.prediction, self.drawing
        told = f"{predicted:.4g}" if isinstance(predicted, float) else figure_text(predicted)
        title = f"predicted {told}\n{self.kept_text}"
        if drawing.missing:
            title += f"\n{drawing.missing} of {self.num_nodes} nodes are not shown"
        make: Any = Figure
        if path is None:  # a file leaves the screen that the user chose as it is
            from matplotlib import pyplot as plt

            make = plt.figure
        figure, names = make(figsize=(5, 4.4)), node_labels or ()
        edges_alone = bool(self.node_mask.all())
        draw_graphs(figure, [drawing], [{"label": title}], edges_alone=edges_alone, names=names)
        if path is None:
            plt.show()
            return
        kind = Path(path).suffix.removeprefix(".") or "png"
        if kind not in (known := figure.canvas.get_supported_filetypes()):
            raise UserError(f"cannot draw a .{kind} file; known: {', '.join(sorted(known))}")
        write_atomically(Path(path), figure_bytes(figure, kind, dpi=150))

    @property
    def drawing(self) -> GraphDrawing:
        """The graph laid out, to be drawn."""
        truth = self.get("node_truth")
        edges, first = undirected(self.edge_index)
        kept = self.edge_mask[first].tolist()
        return GraphDrawing.of(
            edges,
            marked_nodes(self.node_mask.squeeze(-1).tolist(), edges, kept),
            kept,
            None if truth is None else truth.tolist(),
        )

    @property
    def kept_text(self) -> str:
        """Kept shares, for titles."""
        return f"kept {self.node_ratio:.0%} of nodes, {self.edge_ratio:.0%} of edges"


def explain_graphs(
    trained: TrainedModel,
    graphs: GraphStore,
    labels: tuple[Any, ...],
    alpha: float,
    labelled: bool = False,
) -> list[Explanation]:
    """Explain graphs by a trained model, with prediction sets at error rate ``alpha``."""
    with tuned_cpu():
        placed = graphs.placed(next(trained.model.parameters()).device)
        predictions = predict(trained.model, placed).cpu()
        effects = element_effects(trained.model, placed)
    sets, effects = None, None if effects is None else effects.cpu()
    if len(trained.calibration):
        sets = trained.calibration.sets(predictions.probs, alpha, trained.config.sets)
    found = explanations(graphs, predictions, labels, sets, trained.task, labelled, effects)
    return list(found)


def explanations(
    graphs: GraphStore,
    predictions: Predictions,
    labels: tuple[Any, ...],
    sets: Tensor | None,
    task: TaskName,
    labelled: bool = False,
    effects: ElementEffects | None = None,
) -> Iterator[Explanation]:
    """Explain every graph of a store from its predictions, with its set or interval, if any.

    ``labels`` are those of the training. Only if the graphs are ``labelled`` they have a ``y``.
    """
    effects = effects or ElementEffects(None, None)
    for index in range(len(graphs)):
        nodes = slice(int(graphs.node_ptr[index]), int(graphs.node_ptr[index + 1]))
        edges = slice(int(graphs.edge_ptr[index]), int(graphs.edge_ptr[index + 1]))
        kept_nodes = (~predictions.removed_nodes[nodes]).float()
        kept_edges = (~predictions.removed_edges[edges]).float()
        found = predictions.probs[index : index + 1]
        held = None if sets is None else sets[index : index + 1]
        pieces = None if predictions.pieces is None else int(predictions.pieces[index])
        known, part = predictions.part, None
        if known is not None:
            part = (
                float(known.probability[index]),
                bool(known.minimal[index]),
                bool(known.weak[index]),
                int(known.questions[index]),
            )
        explanation = Explanation(
            node_mask=kept_nodes[:, None],
            edge_mask=kept_edges,
            node_score=_part(predictions.node_scores, nodes, kept_nodes),
            edge_score=_part(predictions.edge_scores, edges, kept_edges),
            verdict=replace(_verdict(found, labels, held, task), pieces=pieces, part=part),
            target=TASKS[task].targets(found),
            **graphs.graph(index).to_dict(),
        )
        if effects.nodes is not None:
            explanation.effect_of_nodes = effects.nodes[nodes]
        if effects.edges is not None:
            explanation.effect_of_edges = effects.edges[edges]
        if not labelled:
            del explanation.y
        # PyG's metrics ask the model again with these.
        explanation._model_args = [] if graphs.edge_attr is None else ["edge_attr"]
        yield explanation


def _verdict(
    found: Tensor, labels: tuple[Any, ...], held: Tensor | None, task: TaskName
) -> Verdict:
    row = TASKS[task]
    (predicted,), inside, ends = row.predicted(found, labels), None, None
    if held is not None:
        (inside,) = row.in_sets(held, labels)
        ends = None if row.has_sets else (float(held[0, 0]), float(held[0, 1]))
    probs = found[0].numpy() if row.has_sets else np.empty(0, dtype=np.float32)
    return Verdict(task, predicted, probs, inside, ends)


def _part(scores: Tensor | None, items: slice, kept: Tensor) -> Tensor:
    """Slice the scores; a model that does not choose scores what it saw."""
    return kept if scores is None else scores[items]


class CoresExplainer(ExplainerAlgorithm):
    """The part of a graph that a policy keeps, as the explanation of a classifier.

    >>> from torch_geometric.explain import Explainer
    >>> def explainer(model):  # a fitted cores.Cores
    ...     return Explainer(
    ...         model.classifier_,
    ...         CoresExplainer(model.policy_),
    ...         explanation_type="model",
    ...         node_mask_type="object",
    ...         edge_mask_type="object",
    ...         model_config=dict(
    ...             mode="multiclass_classification", task_level="graph", return_type="raw"
    ...         ),
    ...     )

    Args:
        policy: A trained policy, such as ``policy_`` of a fitted :class:`cores.Cores`.
        hard: Whether masks are 1 for kept and 0 for removed elements; if not, they are the
            probabilities of keeping.
    """

    def __init__(self, policy: Policy, hard: bool = True) -> None:
        super().__init__()
        self.policy = policy
        self.hard = hard

    @torch.no_grad()
    def forward(
        self,
        model: torch.nn.Module,
        x: Tensor,
        edge_index: Tensor,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """Masks of the nodes and edges; the model and its target do not matter to the policy."""
        batch = as_batch(x, edge_index, kwargs.get("edge_attr"), kwargs.get("batch"))
        elements = Elements.of(batch, self.policy.removal)
        logits = self.policy(elements.batch)
        if self.hard:
            subgraph = elements.subgraph(self.policy.mode(elements, logits))
            nodes = (~subgraph.removed_nodes).float()
            edges = (~subgraph.removed_edges).float()
        else:
            nodes, edges = keep_scores(elements, 1 - self.policy.probabilities(logits))
        return Explanation(
            node_mask=nodes[:, None] if self.explainer_config.node_mask_type else None,
            edge_mask=edges if self.explainer_config.edge_mask_type else None,
        )

    def supports(self) -> bool:
        """Return True if the explainer asks for masks of whole nodes or edges of graphs."""
        masks = (self.explainer_config.node_mask_type, self.explainer_config.edge_mask_type)
        return (
            self.model_config.task_level == ModelTaskLevel.graph
            and any(masks)
            and all(mask in (None, MaskType.object) for mask in masks)
        )
