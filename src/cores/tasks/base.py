"""Base classes of tasks: head, loss, reward, metrics, calibration and words."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from cores.config import RewardConfig, RunConfig, SetsConfig
from cores.config.spec import TaskName
from cores.errors import UserError
from cores.tasks.calibration import Calibration

LEAST_LOG_PROB = -3.0
"""Below, a class is as good as ruled out: how far below must not decide what was lost."""
FEWEST_GRAPHS = 10
"""Fewest graphs of a dataset without classes: with fewer, a part would be empty."""

Outputs = Float[Tensor, "graphs outputs"]
"""Probabilities of classes or labels, or predicted numbers."""
Labels = Num[Tensor, "graphs *labels"]
"""Numbers of classes, or targets; of several labels 0 or 1, NaN where one is not known."""
PerGraph = Float[Tensor, " graphs"]
Quantile = Float[Tensor, ""] | None
"""q-hat; None: the prediction alone is the set."""
Measured = dict[str, Any]
Metric = float | list[float | None] | None
"""One number, or one of every label."""


class Head(nn.Linear, ABC):
    """The last layer of a network: its loss, and what it predicts."""

    unit: float = 1.0
    """Unit of effects, in the unit of the predictions."""
    known_tolerance: float | None = None
    """The error that counts as none; None for classes."""

    @abstractmethod
    def outputs(self, logits: Tensor) -> Outputs:
        """Probabilities, or predicted numbers."""

    @abstractmethod
    def combined(
        self, logits: Float[Tensor, "members graphs outputs"], temperature: Tensor
    ) -> Outputs:
        """Logits of several classifiers' mean prediction, at a temperature."""

    @abstractmethod
    def predicted(self, logits: Tensor) -> Tensor:
        """Predictions in the shape of the labels."""

    @abstractmethod
    def lost(self, full: Tensor, part: Tensor) -> PerGraph:
        """Loss of the full graph's prediction in a part, in nats or deviations."""

    @abstractmethod
    def effect(self, full: Tensor, part: Tensor) -> PerGraph:
        """Signed effect of what the part lacks, in probability or deviations."""

    @abstractmethod
    def loss(self, logits: Tensor, y: Tensor, class_weights: Tensor | None) -> Float[Tensor, ""]:
        """Eq. (6), against labels or targets."""

    def fit(self, labels: Tensor, loss: str) -> None:
        """Learn what the head must know of the labels of its training graphs: nothing."""

    def reward_config(self, config: RewardConfig) -> RewardConfig:
        """The settings of the reward with what was found out in training."""
        return config

    def set_tolerance(self, config: RewardConfig, usual: Callable[[], float]) -> None:
        """Set the error that does no harm, asked for or ``usual``; classes have none."""


@dataclass(frozen=True)
class Selection:
    """Quality of predictions on the selection split."""

    metrics: Measured
    score: tuple[float, ...]
    """Compares epochs; higher is better."""
    balanced: Measured
    """Further metrics where classes are balanced."""


@dataclass(frozen=True)
class ShownMetric:
    """A metric as tables and pictures of several models tell it."""

    metric: str
    """Name in `metrics.json`."""
    title: str
    unit: Literal["percent", "target", "plain"] = "percent"
    """Told in percent, in the unit of the targets, or as it is."""
    higher_is_better: bool = True

    def told(self, value: float) -> str:
        """A value in a line or a column."""
        return f"{100 * value:.1f}" if self.unit == "percent" else f"{value:.4g}"


@dataclass(frozen=True)
class Words:
    """Words of pages for a task."""

    sets: str
    """Name of prediction sets or intervals."""
    smaller: str
    """Consequence of a smaller error rate."""
    reading: str
    """Explanation of one."""
    predicted: str
    """Name of the prediction."""


class Task(ABC):
    """A kind of prediction, and all that depends on it."""

    name: ClassVar[TaskName]
    predicts: ClassVar[str]
    """Labels and predictions, in messages."""
    needs: ClassVar[str]
    """Name of a model, in messages."""
    kind: ClassVar[str] = "graph classifier"
    """Kind of network, in model cards."""
    words: ClassVar[Words]
    set_word: ClassVar[tuple[str, str]] = "set", "label"
    """Name of a prediction set and of its members."""
    sure_words: ClassVar[str] = "one label in the set"
    """Condition for a sure prediction."""
    group: ClassVar[str] = ""
    """Single group in which graphs are counted; empty: one per class."""
    has_classes: ClassVar[bool] = False
    """Every graph has one class; features made for classes alone are refused otherwise."""
    has_sets: ClassVar[bool] = True
    """Prediction sets hold labels; otherwise they are intervals."""
    counted: ClassVar[str] = "class"
    """Header of :meth:`class_counts`."""
    meanings: ClassVar[dict[str, str]] = {}
    """Meanings of metrics, where they are not those of every task."""
    unset_fields: ClassVar[tuple[str, ...]]
    """Fields missing from its records."""

    leading: ClassVar[ShownMetric]
    """Metric that ranks models; measured for predictions and for the judge."""
    beside: ClassVar[ShownMetric]
    """Second metric of tables."""
    plain: ClassVar[ShownMetric] = ShownMetric("accuracy", "accuracy")
    """Metric of predictions, of full graphs, and of the judge."""
    baseline: ClassVar[tuple[str, str] | None]
    """The leading metric of a prediction that sees no graph, and its name; None: not measured."""
    curve: ClassVar[tuple[str, ...]] = ()
    """Metrics of every point of a curve over sufficiency; none without one."""
    curve_columns: ClassVar[Mapping[str, str]] = {}
    """Columns of its table, each with its metric."""
    quality: ClassVar[Mapping[str, Callable[[Outputs, Labels], Metric]]]
    """Metrics of predictions, by name."""
    of_full: ClassVar[tuple[str, ...]] = ("accuracy",)
    """Metrics measured on full graphs, too."""
    judged: ClassVar[Mapping[str, Callable[[Outputs, Labels], float]]]
    """Metrics of the judge, by name."""
    scored: ClassVar[str] = "accuracy"
    """The metric that is an estimator's score."""
    calibration: ClassVar[type[Calibration]]
    """Class that computes prediction sets or intervals."""

    def num_outputs(self, num_classes: int, quantile_alpha: float | None) -> int:
        """Numbers that a network predicts of a graph: one per class or label."""
        return num_classes

    @abstractmethod
    def head(self, width: int, num_classes: int, quantile_alpha: float | None) -> Head:
        """The last layer of a network that reads graphs out as so many numbers."""

    def loss_weight(self, y: Tensor, class_weights: Tensor | None) -> float | Tensor:
        """Denominator of the loss over graphs."""
        return float(len(y))

    @staticmethod
    @abstractmethod
    def conformal_scores(probs: Outputs, labels: Labels) -> Float[Tensor, " scores"]:
        """Scores of the true labels, one per graph or known label; q-hat is their quantile."""

    @staticmethod
    @abstractmethod
    def reward(
        probs: Outputs,
        labels: Labels,
        sparsity: PerGraph,
        q_hat: Quantile,
        lam: float | PerGraph,
        config: RewardConfig,
    ) -> PerGraph:
        """Eq. (7)."""

    @abstractmethod
    def selection(self, probs: Outputs, labels: Labels, balanced: bool) -> Selection:
        """Measure predictions on the selection split."""

    def compared(self, probs: Outputs, full: Outputs, labels: Labels) -> Measured:
        """Metrics that also need the predictions from full graphs."""
        return {f"full_{name}": self.quality[name](full, labels) for name in self.of_full}

    def log_loss(self, probs: Outputs, labels: Labels, balanced: bool) -> float | None:
        """Mean negative log-probability of the truth; None for numbers, which have none."""
        return None

    @staticmethod
    @abstractmethod
    def support(probs: Outputs, told: Outputs, tolerance: float | None) -> PerGraph:
        """How strongly predictions from parts say what was told of their graphs.

        Args:
            probs: Predictions from parts.
            told: The predictions that the graphs were given.
            tolerance: The error that counts as none, of numbers.
        """

    def probability(self, support: PerGraph) -> PerGraph | None:
        """The probability that a part gives the prediction, by its support; None for numbers."""
        return torch.where(support < 0, support + 1, support)

    def wanted(self, sufficiency: float, tolerance: float | None) -> float:
        """The least support of a sufficient part."""
        return sufficiency

    least_support: ClassVar[float] = 0.0
    """Below, a part says something else."""

    @staticmethod
    @abstractmethod
    def sentences(
        metrics: Mapping[str, Any], config: RunConfig, calibration: Sequence[int]
    ) -> list[str]:
        """Summarise the metrics of a run in sentences (:mod:`cores.verdict`)."""

    # Labels of a dataset

    @abstractmethod
    def check(
        self, name: str, y: Tensor, class_names: Sequence[str], labels: Sequence[Any]
    ) -> None:
        """Refuse labels of a dataset from which nothing can be learnt."""

    def _check_count(self, name: str, y: Tensor) -> None:
        if len(y) < FEWEST_GRAPHS:
            raise UserError(
                f"{name} has {len(y)} graphs; {self.needs} needs at least {FEWEST_GRAPHS}"
            )

    @abstractmethod
    def label_groups(self, labels: Sequence[Any]) -> Sequence[Sequence[Any]] | None:
        """Labels that must differ from each other; None for what no dataset of the task has."""

    @abstractmethod
    def label_summary(self, y: Tensor, num_classes: int) -> str:
        """Describe the labels in words."""

    @abstractmethod
    def label_facts(self, y: Tensor, class_names: Sequence[str]) -> dict[str, str]:
        """Counts or spread of the labels, for a model card."""

    def class_counts(self, y: Tensor, class_names: Sequence[str]) -> dict[str, int]:
        """Graphs of each class; of several labels, those of which each is known."""
        return {}

    def strata(self, y: Tensor) -> Tensor:
        """Groups of graphs that every part must have in proportion."""
        return y.new_zeros(len(y), dtype=torch.int64)

    def stratum_names(self, class_names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of those groups in messages."""
        return ("any",)

    def order(self, y: Tensor) -> Tensor:
        """Numbers by which graphs are dealt out, so that all folds are alike."""
        return y

    def largest_class(self, y: Tensor) -> float:
        """Share of the most frequent class; 0 without classes."""
        return 0.0

    # What is refused

    def need_classes(self, what: str, subject: str) -> None:
        """Refuse what is made for classes alone."""
        if not self.has_classes:
            raise UserError(f"{what} is for classes, and {subject} {self.predicts}")

    def need_sets(self, what: str, subject: str) -> None:
        """Refuse what is made for prediction sets of labels alone."""
        if not self.has_sets:
            self.need_classes(what, subject)

    def check_settings(self, config: RunConfig, name: str) -> None:
        """Refuse settings of classes where something else is predicted."""
        for asked, setting in (
            (config.training.class_weights, "training.class_weights"),
            (config.training.balance == "always", "training.balance"),
            (
                not self.has_sets and config.sets != SetsConfig(),
                "sets.score and sets.per_class",
            ),
        ):
            if asked and not self.has_classes:
                raise UserError(f"{name} has {self.predicts}; {setting} is for classes")
        if config.training.quantiles and self.has_sets:
            raise UserError(f"{name} has {self.predicts}; training.quantiles is for numbers")

    # Predictions

    @abstractmethod
    def predicted(self, probs: Outputs, labels: Sequence[Any]) -> list[Any]:
        """Predictions as labels were given for training."""

    @abstractmethod
    def predicted_array(self, probs: Outputs, labels: Sequence[Any]) -> Any:
        """Predictions as a NumPy array."""

    @abstractmethod
    def targets(self, probs: Outputs) -> Tensor:
        """Predictions in the shape of the labels, [graphs, ...], for PyG's metrics."""

    def correct(self, targets: Tensor, y: Tensor) -> bool | None:
        """Return whether all known labels are predicted; None for numbers."""
        return bool(((targets == y) | y.isnan()).all())

    def in_sets(self, sets: Tensor, labels: Sequence[Any]) -> list[Any]:
        """The labels in every graph's set; None for intervals."""
        return [None] * len(sets)

    def classes(self, labels: Sequence[Any]) -> Any:
        """The estimator's ``classes_``; None where there are none."""
        return None

    @abstractmethod
    def records(
        self,
        probs: Outputs,
        labels: Sequence[Any],
        names: Sequence[str],
        sets: Tensor | None,
        p_values: Tensor | None,
    ) -> list[dict[str, Any]]:
        """Records of predictions.

        Args:
            probs: What the model predicts.
            labels: The labels, as they were given for training.
            names: What several labels are called.
            sets: Prediction sets, or intervals; None where the model was not calibrated.
            p_values: Of every class; None likewise.
        """

    @abstractmethod
    def columns(self, labels: Sequence[Any], names: Sequence[str]) -> tuple[Any, Any, Any]:
        """Types of pyarrow of a record's prediction, set, and numbers of every label."""

    def told(self, prediction: Any) -> str:
        """A record's prediction for people."""
        return str(prediction)

    def right(self, prediction: Any, label: str | None, values: Mapping[str, Any]) -> bool | None:
        """Return whether a record's prediction is the true label; None where that is unknown.

        Args:
            prediction: Of the record.
            label: The true class, as text.
            values: The true values of several labels, as far as they are known.
        """
        return None if label is None else label == self.told(prediction)

    def sure(self, labels: Any) -> bool | None:
        """Return whether a record's prediction set holds one label; None without a set."""
        return None if labels is None else len(labels) == 1

    def of_label(
        self, record: Mapping[str, Any], values: Mapping[str, Any]
    ) -> list[tuple[str, Any, float, list[Any] | None, Any]]:
        """Name, value, probability, set and true value of each of several labels."""
        return []

    @abstractmethod
    def card(self, record: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Plain data of a record's prediction for the local web page."""


def rounded(probs: Tensor) -> Any:
    """Probabilities or p-values in the digits of records, as nested lists."""
    return probs.double().numpy().round(6).tolist()


def arrow_types() -> dict[type, Any]:
    """Types of pyarrow by those of Python."""
    import pyarrow as pa

    return {bool: pa.bool_(), int: pa.int64(), str: pa.string(), float: pa.float64()}
