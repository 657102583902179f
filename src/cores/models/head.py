"""The last layer of a network, by task: how large it is, its loss, and what it predicts."""

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn
from torch.nn import functional as F

from cores.config.spec import TaskName
from cores.data.dataset import Dims

LEAST_LOG_PROB = -3.0
"""Below, a class is as good as ruled out: how far below must not decide what was lost."""


class ClassHead(nn.Linear):
    """Logits of classes; starts as the paper's classifiers do.

    Args:
        width: Of what a graph is read out as.
        dims: Of the graphs.
    """

    def __init__(self, width: int, dims: Dims) -> None:
        super().__init__(width, dims.num_classes)
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def outputs(self, logits: Float[Tensor, "graphs classes"]) -> Float[Tensor, "graphs classes"]:
        """Probabilities."""
        return logits.softmax(dim=-1)

    def predicted(self, logits: Float[Tensor, "graphs classes"]) -> Int[Tensor, " graphs"]:
        """The number of the likeliest class."""
        return logits.argmax(dim=-1)

    def lost(
        self, full: Float[Tensor, "graphs classes"], part: Float[Tensor, "graphs classes"]
    ) -> Float[Tensor, " graphs"]:
        """Log-probability that the prediction from a full graph loses in a part, in nats."""
        predicted = self.predicted(full)[:, None]
        log_probs = [logits.log_softmax(dim=-1).gather(-1, predicted) for logits in (full, part)]
        before, after = (each.squeeze(-1).clamp(min=LEAST_LOG_PROB) for each in log_probs)
        return before - after

    def effect(
        self, full: Float[Tensor, "graphs classes"], part: Float[Tensor, "graphs classes"]
    ) -> Float[Tensor, " graphs"]:
        """Probability that the prediction from a full graph loses in a part."""
        predicted = self.predicted(full)[:, None]
        before, after = (logits.softmax(dim=-1).gather(-1, predicted) for logits in (full, part))
        return (before - after).squeeze(-1)

    def targets(self, labels: Int[Tensor, " graphs"]) -> Float[Tensor, "graphs classes"]:
        """Labels as what the loss may also be taken against: distributions."""
        return F.one_hot(labels, self.out_features).float()

    def loss(
        self, logits: Float[Tensor, "graphs classes"], y: Tensor, class_weights: Tensor | None
    ) -> Float[Tensor, ""]:
        """The cross-entropy, Eq. (6), against labels or distributions."""
        return F.cross_entropy(logits, y, weight=class_weights)


class ValueHead(nn.Linear):
    """A number, in the unit of the targets.

    Inside, it is counted in deviations from the mean of the training targets; the weights start at
    zero, so that the mean is predicted at first.

    Args:
        width: Of what a graph is read out as.
        dims: Of the graphs.
    """

    mean: Float[Tensor, ""]
    std: Float[Tensor, ""]
    tolerance: Float[Tensor, ""]
    """The error that does no harm; 0 until it is known."""

    def __init__(self, width: int, dims: Dims) -> None:
        super().__init__(width, 1)
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))
        self.register_buffer("tolerance", torch.zeros(()))
        self.absolute = False
        """Whether the loss is absolute; else it is squared."""

    def fit(self, targets: Float[Tensor, " graphs"], loss: str) -> None:
        """Learn mean and deviation of the targets; the loss is squared or absolute."""
        deviation, mean = torch.std_mean(targets.cpu().double(), correction=0)
        self.mean.fill_(mean)
        self.std.fill_(deviation if deviation > 0 else 1.0)
        self.absolute = loss == "absolute"

    def forward(self, h: Float[Tensor, "graphs pooled"]) -> Float[Tensor, "graphs 1"]:
        """Predicted numbers."""
        return super().forward(h) * self.std + self.mean

    def outputs(self, values: Float[Tensor, "graphs outputs"]) -> Float[Tensor, "graphs outputs"]:
        """The numbers as they are."""
        return values

    def predicted(self, values: Float[Tensor, "graphs outputs"]) -> Float[Tensor, " graphs"]:
        """The numbers, one of each graph."""
        return values[:, 0]

    def lost(
        self, full: Float[Tensor, "graphs outputs"], part: Float[Tensor, "graphs outputs"]
    ) -> Float[Tensor, " graphs"]:
        """How far the number from a part is from that of the full graph, in deviations."""
        return ((full - part)[:, 0] / self.std).abs().clamp(max=-LEAST_LOG_PROB)

    def effect(
        self, full: Float[Tensor, "graphs outputs"], part: Float[Tensor, "graphs outputs"]
    ) -> Float[Tensor, " graphs"]:
        """How much higher the number from the full graph is than that from a part, in deviations.

        With its sign: some of what is removed adds to the number, and some takes from it.
        """
        return (full - part)[:, 0] / self.std

    def targets(self, labels: Float[Tensor, " graphs"]) -> Float[Tensor, "graphs 1"]:
        """Targets in the shape of the outputs."""
        return labels[:, None]

    def loss(
        self, values: Float[Tensor, "graphs 1"], y: Num[Tensor, "..."], class_weights: Tensor | None
    ) -> Float[Tensor, ""]:
        """Mean squared or absolute error, in deviations: Eq. (6) for numbers."""
        error = (values - y.view_as(values)) / self.std
        return error.abs().mean() if self.absolute else error.square().mean()


class QuantileHead(ValueHead):
    """A number, and beside it a lower and an upper conditional quantile of the target.

    The quantiles are the number less, and plus, a softplus: they never cross, and the number is
    between them.

    Args:
        width: Of what a graph is read out as.
        dims: Of the graphs; its ``quantile_alpha`` is shared by what is outside of the quantiles.
    """

    def __init__(self, width: int, dims: Dims) -> None:
        super().__init__(width, dims)
        if dims.quantile_alpha is None:
            raise ValueError("there is no level to predict quantiles at")
        self.levels = dims.quantile_alpha / 2, 1 - dims.quantile_alpha / 2
        self.spread = nn.Linear(width, 2)
        """How far below and above the number they are, before the softplus."""
        nn.init.zeros_(self.spread.weight)
        nn.init.zeros_(self.spread.bias)

    def forward(self, h: Float[Tensor, "graphs pooled"]) -> Float[Tensor, "graphs 3"]:
        """Predicted numbers, lower quantiles, upper quantiles."""
        value = super().forward(h)
        below, above = (F.softplus(self.spread(h)) * self.std).split(1, dim=-1)
        return torch.cat([value, value - below, value + above], dim=-1)

    def targets(self, labels: Float[Tensor, " graphs"]) -> Float[Tensor, "graphs 3"]:
        """Targets in the shape of the outputs: all three are learnt from the same number."""
        return labels[:, None].expand(-1, 3)

    def loss(
        self, values: Float[Tensor, "graphs 3"], y: Num[Tensor, "..."], class_weights: Tensor | None
    ) -> Float[Tensor, ""]:
        """The loss of the number, and the pinball losses of both quantiles, in deviations.

        The quantiles learn how far they are from the number; where it is, it learns by itself.
        """
        targets = y.view(len(values), -1).expand_as(values)
        value, quantiles = values[:, :1], values[:, 1:]
        errors = (targets[:, 1:] - quantiles + (value - value.detach())) / self.std
        pinball = pinball_losses(errors, values.new_tensor(self.levels))
        return super().loss(value, targets[:, :1], None) + pinball.sum(dim=-1).mean()


def pinball_losses(
    errors: Float[Tensor, "graphs quantiles"], levels: Float[Tensor, " quantiles"]
) -> Float[Tensor, "graphs quantiles"]:
    """What predicted quantiles are trained by (Koenker and Bassett 1978): least at the true ones.

    >>> pinball_losses(torch.tensor([[2.0, 2.0], [-2.0, -2.0]]), torch.tensor([0.25, 0.75]))
    tensor([[0.5000, 1.5000],
            [1.5000, 0.5000]])
    """
    return torch.maximum(levels * errors, (levels - 1) * errors)


class LabelHead(nn.Linear):
    """A logit for each of several labels; starts as :class:`ClassHead` does.

    Args:
        width: Of what a graph is read out as.
        dims: Of the graphs.
    """

    def __init__(self, width: int, dims: Dims) -> None:
        super().__init__(width, dims.num_classes)
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def outputs(self, logits: Float[Tensor, "graphs labels"]) -> Float[Tensor, "graphs labels"]:
        """Probability that each label is 1."""
        return logits.sigmoid()

    def predicted(self, logits: Float[Tensor, "graphs labels"]) -> Float[Tensor, "graphs labels"]:
        """The likelier value of every label."""
        return (logits > 0).to(logits.dtype)

    def lost(
        self, full: Float[Tensor, "graphs labels"], part: Float[Tensor, "graphs labels"]
    ) -> Float[Tensor, " graphs"]:
        """As of classes, in nats: the mean over the labels."""
        sign = 2 * self.predicted(full) - 1
        log_probs = [F.logsigmoid(sign * logits) for logits in (full, part)]
        before, after = (each.clamp(min=LEAST_LOG_PROB) for each in log_probs)
        return (before - after).mean(dim=-1)

    def effect(
        self, full: Float[Tensor, "graphs labels"], part: Float[Tensor, "graphs labels"]
    ) -> Float[Tensor, " graphs"]:
        """As of classes: the mean over the labels."""
        sign = 2 * self.predicted(full) - 1
        before, after = (torch.sigmoid(sign * logits) for logits in (full, part))
        return (before - after).mean(dim=-1)

    def targets(self, labels: Float[Tensor, "graphs labels"]) -> Float[Tensor, "graphs labels"]:
        """Labels as they are; one that is not known stays so, whatever a teacher predicts."""
        return labels

    def loss(
        self,
        logits: Float[Tensor, "graphs labels"],
        y: Float[Tensor, "graphs labels"],
        class_weights: Tensor | None,
    ) -> Float[Tensor, ""]:
        """Mean binary cross-entropy of the labels that are known: Eq. (6) for each of them."""
        known = ~y.isnan()
        losses = F.binary_cross_entropy_with_logits(logits, y.nan_to_num(), reduction="none")
        return (losses * known).sum() / known.sum().clamp(min=1)


Head = ClassHead | ValueHead | LabelHead
HEADS: dict[TaskName, type[ClassHead] | type[ValueHead] | type[LabelHead]] = {
    "classification": ClassHead,
    "regression": ValueHead,
    "multilabel": LabelHead,
}
"""The last layer, by task."""


def build_head(width: int, dims: Dims) -> Head:
    """The last layer of a network that reads graphs out as so many numbers."""
    if dims.quantile_alpha is not None:
        return QuantileHead(width, dims)
    return HEADS[dims.task](width, dims)
