"""The committee: several classifiers, whose mean prediction is the model's."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores.data.dataset import Dims
from cores.graphs.sums import with_sums
from cores.models.classifier import Classifier
from cores.models.network import GraphModel
from cores.tasks import Head


class Committee(GraphModel):
    """The mean probability of classifiers that were trained on different graphs.

    Deviation D26: the paper has one classifier. Several err less, and the temperature makes their
    probability mean the same on every dataset, so that a part can be asked to reach a threshold.

    Its logits are the logarithm of that mean, divided by one temperature; of a number, they are the
    mean itself.

    Args:
        members: Classifiers of one shape, which share a scaler.
    """

    def __init__(self, members: Sequence[Classifier]) -> None:
        first = members[0]
        super().__init__(Dims(first.num_features, first.num_classes, task=first.task))
        self.num_outputs = first.num_outputs
        self.members: Sequence[Classifier] = nn.ModuleList(members)  # type: ignore[assignment]
        self.scaler = first.scaler
        self.rooted = first.rooted
        self.register_buffer("temperature", torch.ones(()))
        self.temperature: Tensor

    @property
    def head(self) -> Head:
        """What the members' last layers have in common: how logits become predictions."""
        return self.members[0].head

    def member_logits(self, batch: Batch) -> Float[Tensor, "members graphs classes"]:
        """Logits of every member."""
        batch = with_sums(batch)
        return torch.stack([member.logits(batch) for member in self.members])

    def combined(
        self, members: Float[Tensor, "members graphs classes"]
    ) -> Float[Tensor, "graphs classes"]:
        """Combine the members' logits at the temperature."""
        return self.head.combined(members, self.temperature)

    def logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logarithm of the mean probability, divided by the temperature; or the mean number."""
        return self.combined(self.member_logits(batch))

    def outputs(self, logits: Float[Tensor, "graphs classes"]) -> Float[Tensor, "graphs classes"]:
        """Probabilities of classes, or numbers."""
        return self.head.outputs(logits)

    def spread(self, members: Float[Tensor, "members graphs classes"]) -> Float[Tensor, " graphs"]:
        """Standard deviation of the members' predictions; the largest of several outputs."""
        outputs = torch.stack([self.head.outputs(logits) for logits in members])  # [K, B, C]
        return outputs.std(dim=0, correction=0).amax(-1)
