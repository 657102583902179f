"""What every task has: a head, a loss, a reward, metrics, calibration, and words of its own."""

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
"""Where they are not divided by class: with fewer, a part would be empty."""

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
    """What effects are counted in, in the unit of the predictions."""
    known_tolerance: float | None = None
    """The error that counts as none; None for classes."""

    @abstractmethod
    def outputs(self, logits: Tensor) -> Outputs:
        """Probabilities, or predicted numbers."""

    @abstractmethod
    def predicted(self, logits: Tensor) -> Tensor:
        """Predictions in the shape of the labels."""

    @abstractmethod
    def lost(self, full: Tensor, part: Tensor) -> PerGraph:
        """What the prediction from a full graph loses in a part, in nats or deviations."""

    @abstractmethod
    def effect(self, full: Tensor, part: Tensor) -> PerGraph:
        """The same in probability, or in deviations with their sign: what the part takes away."""

    @abstractmethod
    def targets(self, labels: Tensor) -> Tensor:
        """Labels as what the loss may also be taken against, in the shape of the outputs."""

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
    """How good predictions for the selection part are."""

    metrics: Measured
    score: tuple[float, ...]
    """By which epochs are compared; higher is better."""
    balanced: Measured
    """What is measured beside the metrics where classes are balanced."""


@dataclass(frozen=True)
class ShownMetric:
    """A metric as tables and pictures of several models tell it."""

    metric: str
    """As `metrics.json` calls it."""
    title: str
    unit: Literal["percent", "target", "plain"] = "percent"
    """Told in percent, in the unit of the targets, or as it is."""
    higher_is_better: bool = True

    def told(self, value: float) -> str:
        """A value in a line or a column."""
        return f"{100 * value:.1f}" if self.unit == "percent" else f"{value:.4g}"


@dataclass(frozen=True)
class Words:
    """What pages say of a task."""

    sets: str
    """What tells how sure a prediction is."""
    smaller: str
    """What a smaller error rate does to them."""
    reading: str
    """How to read one."""
    predicted: str
    """What a model predicts."""


class Task(ABC):
    """What is predicted of a graph, and all that depends on it."""

    name: ClassVar[TaskName]
    predicts: ClassVar[str]
    """What a dataset has and a model predicts, in messages."""
    needs: ClassVar[str]
    """What needs graphs, in messages."""
    kind: ClassVar[str] = "graph classifier"
    """What a model is."""
    words: ClassVar[Words]
    set_word: ClassVar[tuple[str, str]] = "set", "label"
    """What a prediction set is called, and what it misses."""
    sure_words: ClassVar[str] = "one label in the set"
    """When a prediction is sure."""
    group: ClassVar[str] = ""
    """What all graphs are counted as where they are not counted by class."""
    has_classes: ClassVar[bool] = False
    """Whether every graph has one class; what is made for classes alone is refused otherwise."""
    has_sets: ClassVar[bool] = True
    """Whether prediction sets hold labels; else they are intervals."""
    counted: ClassVar[str] = "class"
    """What :meth:`class_counts` are of."""
    unset_fields: ClassVar[tuple[str, ...]]
    """Fields that its records do not have."""

    leading: ClassVar[ShownMetric]
    """By which models are compared; a metric of predictions and of the judge."""
    beside: ClassVar[ShownMetric]
    """Told beside it."""
    plain: ClassVar[ShownMetric] = ShownMetric("accuracy", "accuracy")
    """What a dial's curve shows; a metric of predictions, of full graphs, and of the judge."""
    baseline: ClassVar[tuple[str, str] | None]
    """The leading metric of a prediction that sees no graph, and its name; None: not measured."""
    level: ClassVar[tuple[str, str]] = "majority_rate", "largest class"
    """The same of the curve's metric."""
    curve: ClassVar[tuple[str, ...]]
    """Metrics of every point of a dial's curve."""
    curve_columns: ClassVar[Mapping[str, str]]
    """Of its table: the metric of each."""
    quality: ClassVar[Mapping[str, Callable[[Outputs, Labels], Metric]]]
    """Metrics of predictions, by name."""
    of_full: ClassVar[tuple[str, ...]] = ("accuracy",)
    """Those that are measured on full graphs, too."""
    judged: ClassVar[Mapping[str, Callable[[Outputs, Labels], float]]]
    """Metrics of the judge, by name."""
    scored: ClassVar[str] = "accuracy"
    """The metric that is an estimator's score."""
    calibration: ClassVar[type[Calibration]]
    """What gives a user sets of labels, or intervals."""

    def num_outputs(self, num_classes: int, quantile_alpha: float | None) -> int:
        """Numbers that a network predicts of a graph: one per class or label."""
        return num_classes

    @abstractmethod
    def head(self, width: int, num_classes: int, quantile_alpha: float | None) -> Head:
        """The last layer of a network that reads graphs out as so many numbers."""

    def loss_weight(self, y: Tensor, class_weights: Tensor | None) -> float | Tensor:
        """What the loss divides its sum over graphs by."""
        return float(len(y))

    @staticmethod
    @abstractmethod
    def conformal_scores(probs: Outputs, labels: Labels) -> Float[Tensor, " scores"]:
        """Of the truth, one of every graph or known label; the reward's q-hat is their quantile."""

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
        """How good predictions for the selection part are; whether classes are balanced."""

    def goodness(self, probs: Outputs, labels: Labels, balanced: bool) -> float:
        """How good predictions are, in one number; higher is better."""
        return self.selection(probs, labels, balanced).score[0]

    def least_good(self, full: float, lost: float) -> float:
        """The goodness that is left of a first one when so much is lost, as ``max_loss`` counts."""
        return full - lost

    def compared(self, probs: Outputs, full: Outputs, labels: Labels) -> Measured:
        """Metrics that also need the predictions from full graphs."""
        return {f"full_{name}": self.quality[name](full, labels) for name in self.of_full}

    @staticmethod
    @abstractmethod
    def sentences(
        metrics: Mapping[str, Any], config: RunConfig, calibration: Sequence[int]
    ) -> list[str]:
        """What the metrics of a run say (:mod:`cores.verdict`)."""

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
        """What labels there are, in words."""

    @abstractmethod
    def label_facts(self, y: Tensor, class_names: Sequence[str]) -> dict[str, str]:
        """How many labels there are, or how they are spread, for a model card."""

    def class_counts(self, y: Tensor, class_names: Sequence[str]) -> dict[str, int]:
        """Graphs of each class; of several labels, those of which each is known."""
        return {}

    def strata(self, y: Tensor) -> Tensor:
        """Groups of graphs that every part must have in proportion."""
        return y.new_zeros(len(y), dtype=torch.int64)

    def stratum_names(self, class_names: tuple[str, ...]) -> tuple[str, ...]:
        """What messages call those groups."""
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
            (config.reward.promised, "a promised `max_loss` (reward.promised)"),
        ):
            if asked and not self.has_classes:
                raise UserError(f"{name} has {self.predicts}; {setting} is for classes")
        if config.training.quantiles and self.has_sets:
            raise UserError(f"{name} has {self.predicts}; training.quantiles is for numbers")

    # Predictions

    @abstractmethod
    def predicted(self, probs: Outputs, labels: Sequence[Any]) -> list[Any]:
        """What is predicted of every graph, as labels were given for training."""

    @abstractmethod
    def predicted_array(self, probs: Outputs, labels: Sequence[Any]) -> Any:
        """The same as a NumPy array."""

    @abstractmethod
    def targets(self, probs: Outputs) -> Tensor:
        """The same in the shape of the labels, [graphs, ...], for PyG's metrics."""

    def correct(self, targets: Tensor, y: Tensor) -> bool | None:
        """Whether all known labels are predicted; None for numbers: none is exactly right."""
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
        """What records tell of predictions.

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
        """Whether a record's prediction is the true label; None where that is not known.

        Args:
            prediction: Of the record.
            label: The true class, as text.
            values: The true values of several labels, as far as they are known.
        """
        return None if label is None else label == self.told(prediction)

    def sure(self, labels: Any) -> bool | None:
        """Whether a record's prediction set holds one label; None without a set."""
        return None if labels is None else len(labels) == 1

    def of_label(
        self, record: Mapping[str, Any], values: Mapping[str, Any]
    ) -> list[tuple[str, Any, float, list[Any] | None, Any]]:
        """Of each of several labels: name, value, its probability, set, and the true value."""
        return []

    @abstractmethod
    def card(self, record: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """What the local page shows of a record's prediction, as plain data."""


def rounded(probs: Tensor) -> Any:
    """Probabilities or p-values in the digits of records, as nested lists."""
    return probs.double().numpy().round(6).tolist()


def arrow_types() -> dict[type, Any]:
    """Types of pyarrow by those of Python."""
    import pyarrow as pa

    return {bool: pa.bool_(), int: pa.int64(), str: pa.string(), float: pa.float64()}
