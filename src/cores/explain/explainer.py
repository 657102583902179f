"""CORES as an algorithm for PyG's ``Explainer``: a policy explains a classifier."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain import ExplainerAlgorithm, Explanation
from torch_geometric.explain.config import MaskType, ModelTaskLevel

from cores.graphs.batches import as_batch
from cores.graphs.subgraphs import Elements
from cores.models.policy import Policy
from cores.models.sparse import keep_scores


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
