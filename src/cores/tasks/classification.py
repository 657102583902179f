"""One of several classes per graph."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from cores.config import RewardConfig
from cores.conformal import lac_scores, prediction_sets, true_scores
from cores.errors import UserError
from cores.files.escape import brief
from cores.parts import class_support
from cores.reward import conformal_reward, performance_reward
from cores.tasks import metrics as measures
from cores.tasks.base import (
    LEAST_LOG_PROB,
    Head,
    Labels,
    Measured,
    Outputs,
    PerGraph,
    Quantile,
    Selection,
    ShownMetric,
    Task,
    Words,
    arrow_types,
    rounded,
)
from cores.tasks.calibration import ClassCalibration
from cores.verdict import class_sentences


class ClassHead(Head):
    """Logits of classes; starts as the paper's classifiers do."""

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__(width, num_classes)
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def outputs(self, logits: Float[Tensor, "graphs classes"]) -> Float[Tensor, "graphs classes"]:
        """Probabilities."""
        return logits.softmax(dim=-1)

    def combined(
        self, logits: Float[Tensor, "members graphs classes"], temperature: Tensor
    ) -> Float[Tensor, "graphs classes"]:
        """Logarithm of the mean probability, divided by the temperature."""
        log_probs = logits.log_softmax(dim=-1).logsumexp(dim=0) - math.log(len(logits))
        return log_probs / temperature

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

    def loss(
        self, logits: Float[Tensor, "graphs classes"], y: Tensor, class_weights: Tensor | None
    ) -> Float[Tensor, ""]:
        """The cross-entropy, Eq. (6), against labels or distributions."""
        return F.cross_entropy(logits, y, weight=class_weights)


def reward_sets(
    probs: Float[Tensor, "graphs classes"], q_hat: Float[Tensor, ""]
) -> Bool[Tensor, "graphs classes"]:
    """Prediction sets of the reward, Eq. (3), by LAC scores (Deviation D11: the paper's are APS).

    Deviation D7: the predicted label stands in. When a classifier errs less often than alpha, its
    least sure graphs get empty sets, right or not; Eq. (7) as written punishes them, and since
    q-hat follows the policy, it would punish every subgraph that is less sure than the rest: only
    keeping everything is safe then.
    """
    sets = prediction_sets(lac_scores(probs), q_hat)
    empty = ~sets.any(dim=-1, keepdim=True)
    return sets | (empty & F.one_hot(probs.argmax(dim=-1), probs.size(-1)).bool())


class Classification(Task):
    """One of several classes per graph."""

    name = "classification"
    predicts = "classes"
    needs = "a classifier"
    words = Words(
        "prediction sets",
        "more labels in the sets",
        "A prediction set holds the labels whose p-value exceeds the error rate. No label: the "
        "graph is unlike those that calibrated the sets.",
        "class",
    )
    has_classes = True
    unset_fields = ("lower", "upper")
    leading = ShownMetric("accuracy", "accuracy")
    beside = ShownMetric("balanced_accuracy", "balanced")
    baseline = "majority_rate", "largest class"
    curve = (
        *("accuracy", "balanced_accuracy", "node_ratio", "edge_ratio", "judge_accuracy"),
        *("judge_balanced_accuracy", "judge_random_accuracy", "judge_random_balanced_accuracy"),
        *("coverage", "set_size"),
    )
    curve_columns = {  # noqa: RUF012
        "accuracy": "accuracy",
        "balanced": "balanced_accuracy",
        "kept": "kept_ratio",
        "weak": "weak",
        "judge": "judge_accuracy",
        "random": "judge_random_accuracy",
        "set size": "set_size",
        "coverage": "coverage",
    }
    quality = {  # noqa: RUF012
        "accuracy": measures.accuracy,
        "balanced_accuracy": measures.balanced_accuracy,
        "majority_rate": lambda probs, labels: measures.majority_rate(labels),
        "roc_auc": measures.roc_auc,
        "average_precision": measures.average_precision,
        "f1": measures.f1,
        "mcc": measures.mcc,
        "calibration_error": measures.calibration_error,
    }
    judged = {  # noqa: RUF012
        "accuracy": measures.accuracy,
        "balanced_accuracy": measures.balanced_accuracy,
    }
    calibration = ClassCalibration
    sentences = staticmethod(class_sentences)

    def log_loss(self, probs: Outputs, labels: Labels, balanced: bool) -> float:
        """Of the true class; balanced, the mean over the classes."""
        return measures.log_loss(probs, labels, balanced)

    @staticmethod
    def support(probs: Outputs, told: Outputs, tolerance: float | None) -> PerGraph:
        """The probability of the class that was told, if it is the largest."""
        return class_support(probs, told.argmax(dim=-1))

    def head(self, width: int, num_classes: int, quantile_alpha: float | None) -> ClassHead:
        """Logits of the classes."""
        return ClassHead(width, num_classes)

    def loss_weight(self, y: Tensor, class_weights: Tensor | None) -> float | Tensor:
        """Denominator of torch's weighted mean."""
        if class_weights is None or y.is_floating_point():  # distributions
            return float(len(y))
        return class_weights[y].sum()

    @staticmethod
    def conformal_scores(probs: Outputs, labels: Labels) -> PerGraph:
        """Conformal score of each graph's class."""
        return true_scores(lac_scores(probs), labels)

    @staticmethod
    def reward(
        probs: Outputs,
        labels: Labels,
        sparsity: PerGraph,
        q_hat: Quantile,
        lam: float | PerGraph,
        config: RewardConfig,
    ) -> PerGraph:
        """Eq. (7) of every graph."""
        if q_hat is None:
            sets = F.one_hot(probs.argmax(-1), probs.size(-1)).bool()
        else:
            sets = reward_sets(probs, q_hat)
        performance = performance_reward(probs, labels)
        return conformal_reward(performance, sparsity, sets, labels, lam)

    def selection(self, probs: Outputs, labels: Labels, balanced: bool) -> Selection:
        """Accuracy, then loss; balanced, by their means over the classes."""
        log_probs = probs.clamp_min(1e-12).log()
        right, loss = measures.accuracy(probs, labels), float(F.nll_loss(log_probs, labels))
        found = {"selection_accuracy": right, "selection_loss": loss}
        if not balanced:
            return Selection(found, (right, -loss), {})
        losses = F.nll_loss(log_probs, labels, reduction="none")
        right = measures.balanced_accuracy(probs, labels)
        score = (right, -measures.class_mean(losses, labels))
        return Selection(found, score, {"selection_balanced_accuracy": right})

    def compared(self, probs: Outputs, full: Outputs, labels: Labels) -> Measured:
        """The accuracy on full graphs, and whether there is more than one answer."""
        answers = len(probs.argmax(-1).unique())
        return {"predicted_classes": answers, **super().compared(probs, full, labels)}

    def check(
        self, name: str, y: Tensor, class_names: Sequence[str], labels: Sequence[Any]
    ) -> None:
        """Refuse classes with a gap, and a single one."""
        if y.min() != 0 or y.max() != len(class_names) - 1:
            raise UserError(f"{name}: the classes must be numbered 0, 1, ... without a gap")
        if len(class_names) < 2:
            raise UserError(
                f"{name}: every graph has the label {class_names[0]}; {self.needs} needs at least "
                "two classes"
            )

    def label_groups(self, labels: Sequence[Any]) -> Sequence[Sequence[Any]] | None:
        """One group of all labels."""
        return (labels,)

    def label_summary(self, y: Tensor, num_classes: int) -> str:
        """Number of classes."""
        return f"{num_classes} classes"

    def label_facts(self, y: Tensor, class_names: Sequence[str]) -> dict[str, str]:
        """Numbers of graphs and classes."""
        return {"graphs": str(len(y)), "classes": str(len(class_names))}

    def class_counts(self, y: Tensor, class_names: Sequence[str]) -> dict[str, int]:
        """Graphs of each class."""
        counts = y.bincount(minlength=len(class_names)).tolist()
        return dict(zip(class_names, counts, strict=True))

    def strata(self, y: Tensor) -> Tensor:
        """The classes."""
        return y

    def stratum_names(self, class_names: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the classes."""
        return class_names

    def largest_class(self, y: Tensor) -> float:
        """Share of the most frequent class."""
        return measures.majority_rate(y)

    def predicted(self, probs: Outputs, labels: Sequence[Any]) -> list[Any]:
        """The likeliest class."""
        return [labels[number] for number in probs.argmax(dim=-1).tolist()]

    def predicted_array(self, probs: Outputs, labels: Sequence[Any]) -> Any:
        """The likeliest class."""
        return self.classes(labels)[probs.numpy().argmax(axis=1)]

    def targets(self, probs: Outputs) -> Tensor:
        """Numbers of classes."""
        return probs.argmax(dim=-1)

    def in_sets(self, sets: Tensor, labels: Sequence[Any]) -> list[Any]:
        """The labels in every graph's set."""
        return [
            [label for label, inside in zip(labels, row, strict=True) if inside]
            for row in sets.tolist()
        ]

    def classes(self, labels: Sequence[Any]) -> Any:
        """The labels as they were given."""
        return np.array(labels)

    def records(
        self,
        probs: Outputs,
        labels: Sequence[Any],
        names: Sequence[str],
        sets: Tensor | None,
        p_values: Tensor | None,
    ) -> list[dict[str, Any]]:
        """The class with probabilities and p-values of all classes, and the set."""
        nothing = [None] * len(probs)
        texts = [str(label) for label in labels]
        rows = zip(
            probs.argmax(dim=-1).tolist(),
            rounded(probs),
            nothing if sets is None else self.in_sets(sets, labels),
            nothing if p_values is None else rounded(p_values),
            strict=True,
        )
        return [
            {
                "prediction": labels[number],
                "probability": row[number],
                "probabilities": dict(zip(texts, row, strict=True)),
                "prediction_set": held,
                "p_values": None if unusual is None else dict(zip(texts, unusual, strict=True)),
            }
            for number, row, held, unusual in rows
        ]

    def columns(self, labels: Sequence[Any], names: Sequence[str]) -> tuple[Any, Any, Any]:
        """A label, a list of labels, and a number of each."""
        import pyarrow as pa

        label = arrow_types()[type(labels[0])]
        return label, pa.list_(label), pa.struct([(str(name), pa.float64()) for name in labels])

    def card(self, record: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """The class, how sure that is, and what is known of the others."""
        labels = record["prediction_set"]
        inside = set() if labels is None else {str(label) for label in labels}
        unusual = record["p_values"] or {}
        by_probability = sorted(record["probabilities"].items(), key=lambda item: -item[1])
        return {
            "probability": record["probability"],
            "set": None if labels is None else [brief(label) for label in labels],
            "promise": ruled_out(labels, len(by_probability)),
            "classes": [
                {
                    "name": brief(name),
                    "probability": probability,
                    "p_value": unusual.get(name),
                    "in_set": name in inside,
                }
                for name, probability in by_probability
            ],
        }


def ruled_out(labels: Sequence[Any] | None, known: int) -> str:
    """Explain a prediction set in words.

    >>> ruled_out(["a", "b"], 3)
    '2 of 3 labels are left; the others are ruled out'
    """
    if labels is None:
        return "there are no prediction sets"
    if not labels:
        return "no label fits: the graph is unlike the calibration graphs"
    if len(labels) == known:
        return "no label is ruled out"
    if len(labels) == 1:
        return "every other label is ruled out"
    return f"{len(labels)} of {known} labels are left; the others are ruled out"
