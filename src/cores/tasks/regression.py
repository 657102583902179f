"""A number per graph, in the unit of the targets."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn
from torch.nn import functional as F

from cores.config import RewardConfig
from cores.conformal import residual_scores
from cores.errors import UserError
from cores.reward import interval_reward
from cores.tasks import metrics as measures
from cores.tasks.base import (
    LEAST_LOG_PROB,
    Head,
    Labels,
    Outputs,
    PerGraph,
    Quantile,
    Selection,
    ShownMetric,
    Task,
    Words,
    arrow_types,
)
from cores.tasks.calibration import ValueCalibration
from cores.verdict import value_sentences


class ValueHead(Head):
    """A number, in the unit of the targets.

    Inside, it is counted in deviations from the mean of the training targets; the weights start at
    zero, so that the mean is predicted at first.
    """

    mean: Float[Tensor, ""]
    std: Float[Tensor, ""]
    tolerance: Float[Tensor, ""]
    """The error that does no harm; 0 until it is known."""

    def __init__(self, width: int) -> None:
        super().__init__(width, 1)
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))
        self.register_buffer("tolerance", torch.zeros(()))
        self.absolute = False
        """The loss is absolute; otherwise squared."""

    @property
    def unit(self) -> float:  # type: ignore[override]
        """Effects are counted in deviations."""
        return float(self.std)

    @property
    def known_tolerance(self) -> float | None:  # type: ignore[override]
        """The error that counts as none; 0 until it is known."""
        return float(self.tolerance)

    def reward_config(self, config: RewardConfig) -> RewardConfig:
        """The settings of the reward with the tolerance as it was set."""
        return replace(config, tolerance=float(self.tolerance))

    def set_tolerance(self, config: RewardConfig, usual: Callable[[], float]) -> None:
        """Set the error that does no harm, asked for or ``usual``; once, since a model keeps it."""
        if float(self.tolerance) > 0:
            return
        found = config.tolerance or usual()
        if not 0 < found < math.inf:
            raise UserError(
                f"cannot derive a tolerance from the members' errors ({found:g}); set "
                "reward.tolerance"
            )
        self.tolerance.fill_(found)

    def fit(self, labels: Float[Tensor, " graphs"], loss: str) -> None:
        """Learn mean and deviation of the targets; the loss is squared or absolute."""
        deviation, mean = torch.std_mean(labels.cpu().double(), correction=0)
        self.mean.fill_(mean)
        self.std.fill_(deviation if deviation > 0 else 1.0)
        self.absolute = loss == "absolute"

    def forward(self, h: Float[Tensor, "graphs pooled"]) -> Float[Tensor, "graphs 1"]:
        """Predicted numbers."""
        return super().forward(h) * self.std + self.mean

    def outputs(self, values: Float[Tensor, "graphs outputs"]) -> Float[Tensor, "graphs outputs"]:
        """The numbers as they are."""
        return values

    def combined(
        self, logits: Float[Tensor, "members graphs outputs"], temperature: Tensor
    ) -> Float[Tensor, "graphs outputs"]:
        """The mean number."""
        return logits.mean(dim=0)

    def predicted(self, values: Float[Tensor, "graphs outputs"]) -> Float[Tensor, " graphs"]:
        """The numbers, one of each graph."""
        return values[:, 0]

    def lost(
        self, full: Float[Tensor, "graphs outputs"], part: Float[Tensor, "graphs outputs"]
    ) -> Float[Tensor, " graphs"]:
        """Distance between the numbers from part and full graph, in deviations."""
        return ((full - part)[:, 0] / self.std).abs().clamp(max=-LEAST_LOG_PROB)

    def effect(
        self, full: Float[Tensor, "graphs outputs"], part: Float[Tensor, "graphs outputs"]
    ) -> Float[Tensor, " graphs"]:
        """Number from the full graph minus that from the part, in deviations.

        With its sign: some of what is removed adds to the number, and some takes from it.
        """
        return (full - part)[:, 0] / self.std

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
        alpha: The share of targets to be outside of the quantiles.
    """

    def __init__(self, width: int, alpha: float) -> None:
        super().__init__(width)
        self.levels = alpha / 2, 1 - alpha / 2
        self.spread = nn.Linear(width, 2)
        """Distances below and above the number, before the softplus."""
        nn.init.zeros_(self.spread.weight)
        nn.init.zeros_(self.spread.bias)

    def forward(self, h: Float[Tensor, "graphs pooled"]) -> Float[Tensor, "graphs 3"]:
        """Predicted numbers, lower quantiles, upper quantiles."""
        value = super().forward(h)
        below, above = (F.softplus(self.spread(h)) * self.std).split(1, dim=-1)
        return torch.cat([value, value - below, value + above], dim=-1)

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
    """Pinball loss of predicted quantiles (Koenker and Bassett 1978): least at the true ones.

    >>> pinball_losses(torch.tensor([[2.0, 2.0], [-2.0, -2.0]]), torch.tensor([0.25, 0.75]))
    tensor([[0.5000, 1.5000],
            [1.5000, 0.5000]])
    """
    return torch.maximum(levels * errors, (levels - 1) * errors)


class Regression(Task):
    """A number per graph."""

    name = "regression"
    predicts = "numbers"
    needs = "a regression"
    kind = "network that predicts a number"
    words = Words(
        "prediction intervals",
        "wider intervals",
        "A prediction interval is the predicted number, plus and minus an error that few "
        "calibration graphs exceed.",
        "number",
    )
    set_word = "interval", "number"
    group = "a number"
    has_sets = False
    unset_fields = ("probability", "probabilities", "prediction_set", "p_values")
    leading = ShownMetric("mae", "MAE", unit="target", higher_is_better=False)
    beside = ShownMetric("r2", "R2", unit="plain")
    plain = ShownMetric("mae", "mean error", unit="target", higher_is_better=False)
    baseline = "constant_mae", "best constant"
    quality = {  # noqa: RUF012
        "mae": measures.mean_absolute_error,
        "rmse": measures.root_mean_squared_error,
        "r2": measures.r2,
        "constant_mae": lambda values, targets: measures.mean_error_of_constant(targets),
    }
    of_full = ("mae",)
    judged = {"mae": measures.mean_absolute_error}  # noqa: RUF012
    scored = "r2"
    calibration = ValueCalibration
    sentences = staticmethod(value_sentences)
    least_support = -math.inf

    @staticmethod
    def support(probs: Outputs, told: Outputs, tolerance: float | None) -> PerGraph:
        """Minus the distance to the number that was told, in tolerances: 0 at best.

        In their unit: supports are compared at a fixed precision, whatever the targets' unit is.
        """
        return -(probs[:, 0] - told[:, 0]).abs() / (tolerance or 1.0)

    def probability(self, support: PerGraph) -> PerGraph | None:
        """None: a number has no probability."""
        return None

    def wanted(self, sufficiency: float, tolerance: float | None) -> float:
        """The least support of a sufficient part: a distance of the tolerance."""
        return -1.0 if tolerance else 0.0

    def num_outputs(self, num_classes: int, quantile_alpha: float | None) -> int:
        """The number, and its two quantiles where these are predicted."""
        return 1 if quantile_alpha is None else 3

    def head(self, width: int, num_classes: int, quantile_alpha: float | None) -> ValueHead:
        """The number, and its two quantiles where these are predicted."""
        return ValueHead(width) if quantile_alpha is None else QuantileHead(width, quantile_alpha)

    @staticmethod
    def conformal_scores(probs: Outputs, labels: Labels) -> PerGraph:
        """Conformal score of each graph's number: how far the predicted one is from it."""
        return residual_scores(probs[:, 0], labels)

    @staticmethod
    def reward(
        probs: Outputs,
        labels: Labels,
        sparsity: PerGraph,
        q_hat: Quantile,
        lam: float | PerGraph,
        config: RewardConfig,
    ) -> PerGraph:
        """Deviation D20: Eq. (7) with an interval for a set (:func:`cores.reward.interval_reward`).

        Before the tolerance is known, there is no error that it does not cover.
        """
        tolerance = config.tolerance or float(torch.finfo(probs.dtype).max) / 4
        half_width = probs.new_zeros(()) if q_hat is None else q_hat
        error = labels - probs[:, 0]
        return interval_reward(error, sparsity, half_width, tolerance, lam)

    def selection(self, probs: Outputs, labels: Labels, balanced: bool) -> Selection:
        """A lower mean error."""
        error = measures.mean_absolute_error(probs, labels)
        return Selection({"selection_mae": error}, (-error,), {})

    def check(
        self, name: str, y: Tensor, class_names: Sequence[str], labels: Sequence[Any]
    ) -> None:
        """Refuse too few graphs, and targets that are all the same."""
        self._check_count(name, y)
        if bool((y == y[0]).all()):
            raise UserError(
                f"{name}: every graph has the label {float(y[0]):g}; there is nothing to learn"
            )

    def label_groups(self, labels: Sequence[Any]) -> Sequence[Sequence[Any]] | None:
        """None: numbers are no labels."""
        return None if labels else ()

    def label_summary(self, y: Tensor, num_classes: int) -> str:
        """The word numbers."""
        return "numbers"

    def label_facts(self, y: Tensor, class_names: Sequence[str]) -> dict[str, str]:
        """Number of graphs and spread of the targets."""
        y = y.double()
        spread = {"mean": y.mean(), "deviation": y.std(correction=0), "least": y.min()}
        spread["greatest"] = y.max()
        return {"graphs": str(len(y))} | {
            name: f"{float(value):.6g}" for name, value in spread.items()
        }

    def predicted(self, probs: Outputs, labels: Sequence[Any]) -> list[Any]:
        """The number."""
        return probs[:, 0].tolist()

    def predicted_array(self, probs: Outputs, labels: Sequence[Any]) -> Any:
        """The numbers."""
        return probs[:, 0].numpy()

    def targets(self, probs: Outputs) -> Tensor:
        """The numbers."""
        return probs[:, 0]

    def correct(self, targets: Tensor, y: Tensor) -> bool | None:
        """None: no number is exactly right."""
        return None

    def records(
        self,
        probs: Outputs,
        labels: Sequence[Any],
        names: Sequence[str],
        sets: Tensor | None,
        p_values: Tensor | None,
    ) -> list[dict[str, Any]]:
        """The number and the ends of its interval, None for one without end."""
        ends: list[Any] = [(None, None)] * len(probs)
        if sets is not None:
            pairs = zip(sets.isfinite().all(dim=-1).tolist(), sets.tolist(), strict=True)
            ends = [
                tuple(map(_significant, pair)) if bounded else (None, None)
                for bounded, pair in pairs
            ]
        return [
            {"prediction": _significant(value), "lower": lower, "upper": upper}
            for value, (lower, upper) in zip(probs[:, 0].tolist(), ends, strict=True)
        ]

    def columns(self, labels: Sequence[Any], names: Sequence[str]) -> tuple[Any, Any, Any]:
        """A number; there are no sets."""
        number = arrow_types()[float]
        return number, number, number

    def told(self, prediction: Any) -> str:
        """The number in four digits."""
        return f"{prediction:.4g}"

    def right(self, prediction: Any, label: str | None, values: Mapping[str, Any]) -> bool | None:
        """None: no number is exactly right."""
        return None

    def card(self, record: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """The ends of the interval."""
        lower, upper = record["lower"], record["upper"]
        return {"interval": None if lower is None else [f"{lower:.4g}", f"{upper:.4g}"]}


def _significant(value: float) -> float:
    """A number in the digits that single precision has."""
    return float(f"{value:.7g}")
