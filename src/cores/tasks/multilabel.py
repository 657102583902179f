"""Several labels per graph, of two values each, of which some are not known."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from cores.config import RewardConfig
from cores.conformal import value_probs
from cores.errors import UserError
from cores.files.escape import brief
from cores.parts import TIE
from cores.tasks import metrics as measures
from cores.tasks.base import (
    LEAST_LOG_PROB,
    Labels,
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
from cores.tasks.calibration import LabelCalibration
from cores.tasks.classification import ClassHead, Classification
from cores.verdict import label_sentences

CHANCE = 0.5
"""The ROC-AUC of guessing; also of graphs that leave it undefined, where epochs are compared."""


class LabelHead(ClassHead):
    """A logit for each of several labels; starts as that of classes does."""

    def outputs(self, logits: Float[Tensor, "graphs labels"]) -> Float[Tensor, "graphs labels"]:
        """Probability that each label is 1."""
        return logits.sigmoid()

    def combined(
        self, logits: Float[Tensor, "members graphs labels"], temperature: Tensor
    ) -> Float[Tensor, "graphs labels"]:
        """Log-odds of the mean probability of each label, divided by the temperature."""
        yes, no = F.logsigmoid(logits).logsumexp(dim=0), F.logsigmoid(-logits).logsumexp(dim=0)
        return (yes - no) / temperature

    def predicted(self, logits: Float[Tensor, "graphs labels"]) -> Float[Tensor, "graphs labels"]:
        """The likelier value of every label."""
        return (logits > 0).to(logits.dtype)

    def lost(
        self, full: Float[Tensor, "graphs labels"], part: Float[Tensor, "graphs labels"]
    ) -> Float[Tensor, " graphs"]:
        """Mean over the labels of the log-probability lost, in nats."""
        sign = 2 * self.predicted(full) - 1
        log_probs = [F.logsigmoid(sign * logits) for logits in (full, part)]
        before, after = (each.clamp(min=LEAST_LOG_PROB) for each in log_probs)
        return (before - after).mean(dim=-1)

    def effect(
        self, full: Float[Tensor, "graphs labels"], part: Float[Tensor, "graphs labels"]
    ) -> Float[Tensor, " graphs"]:
        """Mean over the labels of the probability lost."""
        sign = 2 * self.predicted(full) - 1
        before, after = (torch.sigmoid(sign * logits) for logits in (full, part))
        return (before - after).mean(dim=-1)

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


def _ranked(probs: Outputs, labels: Labels) -> float:
    found = measures.mean_label_roc_auc(probs, labels)
    return CHANCE if found is None else found


class Multilabel(Task):
    """Several labels per graph, of two values each, of which some are not known."""

    name = "multilabel"
    predicts = "several labels"
    needs = "a multilabel task"
    words = Words(
        "prediction sets",
        "more values in the sets",
        "Beside each label stand its predicted value with its probability, and a set of its own: "
        "the values that are not ruled out. One part is kept for all labels.",
        "labels",
    )
    sure_words = "one value in every set"
    group = "several labels"
    counted = "label, known of"
    meanings = {  # noqa: RUF012
        "accuracy": "share of the known values predicted correctly",
        "balanced_accuracy": "mean accuracy over labels and values",
        "majority_rate": "accuracy of the more frequent values",
        "roc_auc": "mean ROC-AUC of the labels",
        "average_precision": "mean average precision of the labels",
        "coverage": "share of sets with the true value",
        "set_size": "mean number of values per prediction set",
    }
    unset_fields = ("lower", "upper", "probability", "p_values")
    leading = ShownMetric("roc_auc", "ROC-AUC")
    beside = ShownMetric("accuracy", "accuracy")
    baseline = None  # the majority rate is an accuracy
    curve = ("roc_auc", *Classification.curve, "judge_roc_auc", "judge_random_roc_auc")
    curve_columns = {"ROC-AUC": "roc_auc", **Classification.curve_columns}  # noqa: RUF012
    quality = {  # noqa: RUF012
        "roc_auc": measures.mean_label_roc_auc,
        "average_precision": measures.mean_label_average_precision,
        "accuracy": measures.label_accuracy,
        "balanced_accuracy": measures.label_balanced_accuracy,
        "majority_rate": lambda probs, labels: measures.label_majority_rate(labels),
        "label_roc_auc": measures.label_roc_auc,
    }
    of_full = "roc_auc", "accuracy"
    judged = {  # noqa: RUF012
        "roc_auc": _ranked,
        "accuracy": measures.label_accuracy,
        "balanced_accuracy": measures.label_balanced_accuracy,
    }
    calibration = LabelCalibration
    sentences = staticmethod(label_sentences)

    def log_loss(self, probs: Outputs, labels: Labels, balanced: bool) -> float:
        """Of the true values of the labels that are known."""
        return measures.label_log_loss(probs, labels)

    @staticmethod
    def support(probs: Outputs, told: Outputs, tolerance: float | None) -> PerGraph:
        """The least sure of the predicted sides, if none of them is another one."""
        side = torch.where(told > 0.5, probs, 1 - probs).amin(dim=-1)  # [B]
        return torch.where(side >= 0.5 - TIE, side, side - 1)

    def head(self, width: int, num_classes: int, quantile_alpha: float | None) -> LabelHead:
        """A logit of each label."""
        return LabelHead(width, num_classes)

    def loss_weight(self, y: Tensor, class_weights: Tensor | None) -> float | Tensor:
        """Number of known labels."""
        return (~y.isnan()).sum()

    @staticmethod
    def conformal_scores(probs: Outputs, labels: Labels) -> Float[Tensor, " scores"]:
        """Scores of the known labels together: some have too few for a quantile."""
        known = ~labels.isnan()
        return Classification.conformal_scores(value_probs(probs[known]), labels[known].long())

    @staticmethod
    def reward(
        probs: Outputs,
        labels: Labels,
        sparsity: PerGraph,
        q_hat: Quantile,
        lam: float | PerGraph,
        config: RewardConfig,
    ) -> PerGraph:
        """Deviation D24: the mean of Eq. (7) over the known labels, each with two classes.

        A graph of which no label is known has none.
        """
        known, number = ~labels.isnan(), labels.size(1)
        values = labels.nan_to_num().long().flatten()  # [B * L]
        weights = lam.repeat_interleave(number) if isinstance(lam, Tensor) else lam
        sparse = sparsity.repeat_interleave(number)
        pairs = value_probs(probs.flatten())  # [B * L, 2]
        rewards = Classification.reward(pairs, values, sparse, q_hat, weights, config)
        rewards = rewards.view_as(labels)
        return (rewards * known).sum(dim=-1) / known.sum(dim=-1).clamp(min=1)

    def selection(self, probs: Outputs, labels: Labels, balanced: bool) -> Selection:
        """Mean ROC-AUC, then loss."""
        known = ~labels.isnan()
        of_truth = value_probs(probs[known]).gather(-1, labels[known].long()[:, None])
        loss = -float(of_truth.clamp_min(1e-12).log().mean()) if len(of_truth) else 0.0
        ranked = _ranked(probs, labels)
        return Selection({"selection_roc_auc": ranked, "selection_loss": loss}, (ranked, -loss), {})

    def check(
        self, name: str, y: Tensor, class_names: Sequence[str], labels: Sequence[Any]
    ) -> None:
        """Refuse too few graphs, and labels that are always the same."""
        self._check_count(name, y)
        for label, values, column in zip(class_names, labels, y.T, strict=True):
            found = column[~column.isnan()].unique().long().tolist()
            if len(found) < 2:
                told = f"is always {values[found[0]]}" if found else "is never known"
                raise UserError(
                    f"{name}: the label {label} {told}; there is nothing to learn, leave it out"
                )

    def label_groups(self, labels: Sequence[Any]) -> Sequence[Sequence[Any]] | None:
        """The pair of values of each label."""
        pairs = bool(labels) and all(isinstance(each, tuple) and len(each) == 2 for each in labels)
        return labels if pairs else None

    def label_summary(self, y: Tensor, num_classes: int) -> str:
        """Number of labels, and share of missing values."""
        missing = float(y.isnan().double().mean())
        told = f"{num_classes} label{'s' * (num_classes != 1)}"
        return f"{told} each ({100 * missing:.0f} % of the values missing)" if missing else told

    def label_facts(self, y: Tensor, class_names: Sequence[str]) -> dict[str, str]:
        """Numbers of graphs and labels."""
        return {"graphs": str(len(y)), "labels": str(len(class_names))}

    def class_counts(self, y: Tensor, class_names: Sequence[str]) -> dict[str, int]:
        """Graphs of which each label is known."""
        return dict(zip(class_names, (~y.isnan()).sum(dim=0).tolist(), strict=True))

    def order(self, y: Tensor) -> Tensor:
        """Number of labels that are 1."""
        return y.nansum(dim=1)

    def predicted(self, probs: Outputs, labels: Sequence[Any]) -> list[Any]:
        """The likelier value of every label."""
        return [
            [pair[number] for pair, number in zip(labels, row, strict=True)]
            for row in self.targets(probs).tolist()
        ]

    def predicted_array(self, probs: Outputs, labels: Sequence[Any]) -> Any:
        """The likelier values, of one kind, or objects where they differ in that."""
        chosen = self.targets(probs).numpy()
        kinds = {type(value) for pair in labels for value in pair}
        columns = [np.array(pair)[chosen[:, at]] for at, pair in enumerate(labels)]
        if len(kinds) > 1:
            columns = [column.astype(object) for column in columns]
        return np.stack(columns, axis=1)

    def targets(self, probs: Outputs) -> Tensor:
        """0 or 1 of every label."""
        return (probs > 0.5).long()

    def in_sets(self, sets: Tensor, labels: Sequence[Any]) -> list[Any]:
        """The values in the set of every label."""
        return [
            [
                [value for value, inside in zip(pair, held, strict=True) if inside]
                for pair, held in zip(labels, row, strict=True)
            ]
            for row in sets.tolist()
        ]

    def classes(self, labels: Sequence[Any]) -> Any:
        """The values of every label."""
        return [np.array(pair) for pair in labels]

    def records(
        self,
        probs: Outputs,
        labels: Sequence[Any],
        names: Sequence[str],
        sets: Tensor | None,
        p_values: Tensor | None,
    ) -> list[dict[str, Any]]:
        """Value, probability of the second value, and set of each label, by name."""

        def by_name(rows: Sequence[Any]) -> list[dict[str, Any]]:
            return [dict(zip(names, row, strict=True)) for row in rows]

        held: Sequence[Any] = [None] * len(probs)
        if sets is not None:
            held = by_name(self.in_sets(sets, labels))
        rows = zip(
            by_name(self.predicted(probs, labels)), by_name(rounded(probs)), held, strict=True
        )
        fields = ("prediction", "probabilities", "prediction_set")
        return [dict(zip(fields, row, strict=True)) for row in rows]

    def columns(self, labels: Sequence[Any], names: Sequence[str]) -> tuple[Any, Any, Any]:
        """A value, a list of values, and a number of each label."""
        import pyarrow as pa

        known = arrow_types()
        kinds = [(name, known[type(pair[0])]) for name, pair in zip(names, labels, strict=True)]
        sets = pa.struct([(name, pa.list_(kind)) for name, kind in kinds])
        return pa.struct(kinds), sets, pa.struct([(name, pa.float64()) for name in names])

    def told(self, prediction: Any) -> str:
        """The value of every label."""
        return ", ".join(f"{name}: {value}" for name, value in prediction.items())

    def right(self, prediction: Any, label: str | None, values: Mapping[str, Any]) -> bool | None:
        """Return whether all known labels are right."""
        right = [str(prediction[name]) == str(value) for name, value in values.items()]
        return all(right) if right else None

    def sure(self, labels: Any) -> bool | None:
        """Return whether the set of every label holds one value."""
        return None if labels is None else all(len(held) == 1 for held in labels.values())

    def of_label(
        self, record: Mapping[str, Any], values: Mapping[str, Any]
    ) -> list[tuple[str, Any, float, list[Any] | None, Any]]:
        """Name, value, probability, set and true value of each label."""
        sets, found = record["prediction_set"], []
        for (name, value), second in zip(
            record["prediction"].items(), record["probabilities"].values(), strict=True
        ):
            held = None if sets is None else sets[name]
            found.append((name, value, max(second, 1 - second), held, values.get(name)))
        return found

    def card(self, record: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Every label with its value, how sure that is, and the true one."""
        return {
            "labels": [
                {
                    "name": brief(name),
                    "prediction": brief(value),
                    "probability": probability,
                    "set": None if held is None else [brief(each) for each in held],
                    "label": None if known is None else brief(known),
                    "correct": None if known is None else str(known) == str(value),
                }
                for name, value, probability, held, known in self.of_label(record, values)
            ]
        }
