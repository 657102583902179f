"""Sentences on a run's metrics: the headline first, what to be careful with after it.

Pure functions of metrics and settings, one per task. Needs no torch.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from cores.config import RunConfig

Metrics = Mapping[str, Any]
Kind = Literal[
    "one-class",
    "no-skill",
    "code",
    "random",
    "dense",
    "weak",
    "sparsity-cost",
    "fine",
    "sets",
    "coverage",
    "small-test",
]

STANDARD_ERRORS = 2.0
"""A difference of more standard errors than this is no noise: about 95 % confidence."""
JUDGE_GAP = 0.05
"""Smallest gap between model and judge that is worth a warning, however many the test graphs: two
networks trained apart differ by some points on the same graphs. In accuracy, or in mean ROC-AUC."""
SPARSITY_COST = 0.02
"""Smallest loss by sparsity that is worth a sentence, however many the test graphs; likewise."""
MUCH = 0.2
"""A gap of this size between chosen and random subgraphs is called large."""
DENSE = 0.9
"""A part that keeps more than this share was not chosen."""
MANY_WEAK = 0.5
"""Where more of the graphs are weak, the sufficiency is too high for the model."""
ENOUGH_POLICY_EPOCHS = 30
"""What the policy has by default; with fewer, a dense policy has hardly begun, and nothing is wrong
with its reward."""
LEAST_SUFFICIENCY = 0.5
"""No sufficiency is lower."""
IMBALANCED = 0.1
"""Where the largest class is this far above its equal share, accuracy hides what happens to the
others, and skill is read off the balanced accuracy."""
SMALL_TEST = 100
"""Below this, one graph is more than a point."""
HARDLY_BETTER, LARGER, ERROR_COST = 0.9, 1.25, 1.1
"""Mean errors: above the first share of the best constant's, they show no skill; by a larger factor
than the second, they are called different; above the third times that on full graphs, sparsity is
said to cost."""
LEAST_RANKING, CHOSEN = 0.55, 0.02
"""Mean ROC-AUCs: below the first they show no skill (guessing has 0.5); subgraphs that are worth
less than the second to a judge, against random ones, were not chosen."""


def class_sentences(metrics: Metrics, config: RunConfig, calibration: Sequence[int]) -> list[str]:
    """The texts of :func:`class_findings`, as ``metrics.json`` holds them."""
    return list(class_findings(metrics, config, calibration).values())


def class_findings(
    metrics: Metrics, config: RunConfig, calibration: Sequence[int]
) -> dict[Kind, str]:
    """Sentences on a classification by kind; names of arguments are in backticks.

    Args:
        metrics: As :func:`cores.runs.fit.measure` gives them, and ``epochs`` where they are known.
        config: The run's settings.
        calibration: Number of calibration graphs of every class.
    """
    measure = _Measure.of(metrics, len(calibration))
    said = {
        **_skill(metrics, measure),
        **_honesty(metrics, config, measure),
        **_sparsity(metrics, config),
    } or _fine(metrics, config, measure)
    said |= _sets(metrics, config, calibration)
    graphs, accuracy = metrics["test_graphs"], metrics["accuracy"]
    if graphs < SMALL_TEST:
        chance = _points(noise(accuracy, accuracy, graphs))
        said["small-test"] = (
            f"Measured on {_count(graphs, 'test graph')}: read differences below {chance} as noise."
        )
    return said


def promise_sentence(found: Metrics) -> str:
    """Describe the guarantee of a model at its sufficiency.

    Args:
        found: As :func:`cores.runs.promise.tuned_model` gives it.
    """
    whom = "Of every class" if found["per_class"] else "Of all graphs"
    how = "on average over calibration parts"
    if found["confidence"] is not None:
        how = f"with a confidence of {100 * found['confidence']:g} %"
    return (
        f"{whom}, at most {100 * found['max_wrong']:g} % get a wrong class without being weak, "
        f"{how}: promised at a sufficiency of {found['sufficiency']:g} by {found['graphs']:,} "
        f"calibration graphs, for new graphs that are like them. {_percent(found['answered'])} of "
        "the calibration graphs are not weak."
    )


def measured_before(metrics: Metrics, sufficiency: float) -> str:
    """Say that metrics belong to an earlier sufficiency."""
    return (
        f"Measured at a sufficiency of {metrics.get('sufficiency', '?')}, before it was set to "
        f"{sufficiency:g}: `cores evaluate` measures the model there."
    )


def noise(first: float, second: float, graphs: int | float) -> float:
    """Differences of two accuracies on the same graphs that chance makes.

    Their errors are taken as independent. Networks mostly err on the same graphs, so the truth is
    rather less.

    >>> round(noise(0.9, 0.9, 100), 3), round(noise(0.9, 0.9, 10_000), 3)
    (0.089, 0.008)
    """
    return STANDARD_ERRORS * math.hypot(_error(first, graphs), _error(second, graphs))


def _error(share: float, graphs: int | float) -> float:
    """Standard error of a share, with two graphs more on either side (Agresti and Coull 1998).

    As counted, the error of 10 right out of 10 would be zero.
    """
    count = graphs + 4
    smoothed = (share * graphs + 2) / count
    return math.sqrt(smoothed * (1 - smoothed) / count)


@dataclass(frozen=True)
class _Measure:
    """Measure of skill: the accuracy, or the balanced one where a class is frequent."""

    name: Literal["accuracy", "balanced_accuracy"]
    guess: str
    """Baseline that sees no graph."""
    guessed: float
    """Value of that baseline."""
    graphs: int | float
    """Effective number of graphs."""

    @classmethod
    def of(cls, metrics: Metrics, num_classes: int) -> "_Measure":
        graphs, largest = metrics["test_graphs"], metrics["majority_rate"]
        if not 1 / num_classes + IMBALANCED < largest < 1:
            return cls("accuracy", "always predicting the largest class", largest, graphs)
        effective = _balanced_graphs(graphs, largest, num_classes)
        return cls("balanced_accuracy", "guessing", 1 / num_classes, effective)

    @property
    def words(self) -> str:
        """Its name, for people."""
        return self.name.replace("_", " ")

    def judged(self, metrics: Metrics) -> tuple[float, float, float]:
        """The judge on the chosen parts, the full graphs, and random parts."""
        chosen, full, random = (
            metrics[f"judge_{seen}{self.name}"] for seen in ("", "full_", "random_")
        )
        return chosen, full, random

    def shows_skill(self, reached: float) -> bool:
        """Return whether a value is above the baseline by more than chance."""
        return reached > self.guessed + STANDARD_ERRORS * _error(reached, self.graphs)

    def differ(self, higher: float, lower: float) -> bool:
        """Return whether one value is above another by more than chance."""
        return higher - lower > noise(higher, lower, self.graphs)


def _balanced_graphs(graphs: int, largest: float, num_classes: int) -> float:
    """Number of graphs of equal classes that makes the balanced accuracy as uncertain.

    It is a mean over classes, and as uncertain as its smallest class makes it. The other classes
    are taken as equally large.

    >>> _balanced_graphs(100, 0.5, 2), round(_balanced_graphs(100, 0.9, 2), 3)
    (100.0, 36.0)
    """
    others = num_classes - 1
    return graphs * num_classes**2 / (1 / largest + others**2 / (1 - largest))


def _skill(metrics: Metrics, measure: _Measure) -> dict[Kind, str]:
    """Warn of a model without skill; graphs of one class cannot show any."""
    reached = metrics[measure.name]
    if metrics["majority_rate"] < 1 and metrics["predicted_classes"] == 1:
        return {
            "one-class": "Predicts one class only: train longer (`epochs`), or let rare classes "
            'count as much as others (training.balance="always").'
        }
    if metrics["majority_rate"] < 1 and not measure.shows_skill(reached):
        return {
            "no-skill": f"Not shown to be better than {measure.guess}: {measure.words} "
            f"{reached:.2f} against {measure.guessed:.2f}."
        }
    return {}


def _honesty(metrics: Metrics, config: RunConfig, measure: _Measure) -> dict[Kind, str]:
    """Warn of subgraphs that, by the judge, are no reasons."""
    if metrics["judge_accuracy"] is None:
        return {}
    judged, on_full, random = measure.judged(metrics)
    own, balanced = metrics[measure.name], measure.name != "accuracy"
    if own - judged > JUDGE_GAP and measure.differ(own, judged):
        by = f" in {measure.words}" if balanced else ""
        below = f"The judge is {_points(own - judged)} below the model{by}"
        if measure.differ(on_full, judged):
            return {"code": f"{below}: the subgraph may be a code, not a reason."}
        return {  # it does not know the task, so it cannot say
            "code": f"{below}, and no better on full graphs ({on_full:.2f}): it cannot tell "
            "whether the subgraph is a reason."
        }
    if kept_share(metrics, config)[0] > DENSE or measure.differ(judged, random):
        return {}
    if metrics["majority_rate"] < 1 and not measure.shows_skill(on_full):
        return {
            "code": f"The judge is not shown to be better than {measure.guess} on full graphs "
            f"({measure.words} {on_full:.2f}): it cannot tell whether the subgraph is a reason."
        }
    by = f"{measure.words} " if balanced else ""
    return {
        "random": f"A random part of the same size is as good, within noise ({by}{random:.2f}, the "
        f"chosen one {judged:.2f}): do not read the subgraph as a reason{_for_more(config)}."
    }


def _sparsity(metrics: Metrics, config: RunConfig) -> dict[Kind, str]:
    """Warn of parts that are nearly everything, of weak ones, and of accuracy lost by removal."""
    said: dict[Kind, str] = {}
    if _is_dense(metrics, config):
        said["dense"] = _too_dense(metrics, config, _for_less(config))
    if metrics.get("weak", 0) > MANY_WEAK:
        said["weak"] = _too_weak(metrics, _less_sure(config))
    kept, full = metrics["accuracy"], metrics["full_accuracy"]
    worth_it = max(SPARSITY_COST, noise(full, kept, metrics["test_graphs"]))
    if config.spec.removes is not None and full - kept > worth_it:
        said["sparsity-cost"] = (
            f"Sparsity costs {_points(full - kept)}: the classifier has {full:.2f} on full graphs, "
            f"{kept:.2f} on what is kept{_for_full(metrics, config)}."
        )
    return said


def _fine(metrics: Metrics, config: RunConfig, measure: _Measure) -> dict[Kind, str]:
    """The headline of a run with nothing to complain of."""
    reached = f"{measure.words.capitalize()} {metrics[measure.name]:.2f}"
    if config.spec.removes is None:
        return {"fine": f"{reached}; {measure.guess} has {measure.guessed:.2f}."}
    headline = f"{reached}{_by_part(metrics, config)}"
    if metrics["judge_accuracy"] is None:
        return {"fine": f"{headline}; no judge has checked the subgraphs."}
    judged, _, random = measure.judged(metrics)
    worse = "much worse" if judged - random >= MUCH else "worse"
    return {
        "fine": f"{headline}; an independent classifier agrees on the same subgraphs "
        f"({judged:.2f}), and does {worse} on random ones ({random:.2f})."
    }


def _sets(metrics: Metrics, config: RunConfig, calibration: Sequence[int]) -> dict[Kind, str]:
    """Warn of sets that hold every label, or miss the true one too often."""
    said: dict[Kind, str] = {}
    size, alpha, coverage = metrics["set_size"], metrics["alpha"], metrics["coverage"]
    if size is None:
        return said
    needed, per_class = _needed(alpha), config.sets.per_class
    counts = list(calibration) if per_class else [sum(calibration)] * len(calibration)
    if short := [count for count in counts if count < needed]:
        held = "every label"
        if len(short) < len(counts):
            held = f"{len(short)} of the {len(counts)} labels always"
        few = f"{_count(min(short), 'calibration graph')}{' of a class' if per_class else ''}"
        said["sets"] = (
            f"Prediction sets hold {held}: {few} {'is' if min(short) == 1 else 'are'} too few for "
            f"alpha = {alpha:g} (needs {needed})."
        )
    elif size >= len(counts):
        said["sets"] = (
            f"Prediction sets hold every label: the model is too unsure for alpha = {alpha:g}."
        )
    if coverage < 1 - alpha - STANDARD_ERRORS * _error(1 - alpha, metrics["test_graphs"]):
        said["coverage"] = (
            f"Prediction sets hold the true label of {_percent(coverage)} of the graphs, not of "
            f"{_percent(1 - alpha)}: these graphs are unlike the calibration part, or that part "
            f"({_count(sum(calibration), 'graph')}) is too small."
        )
    return said


def value_sentences(metrics: Metrics, config: RunConfig, calibration: Sequence[int]) -> list[str]:
    """Sentences on a regression; ``calibration`` is the number of calibration graphs."""
    error, constant, full = metrics["mae"], metrics["constant_mae"], metrics["full_mae"]
    judged, random = metrics["judge_mae"], metrics["judge_random_mae"]
    coverage, promised = metrics["coverage"], 1 - metrics["alpha"]
    graphs, (known,) = metrics["test_graphs"], calibration

    part = _by_part(metrics, config)
    headline = f"Mean error {error:.3g}{part}; the best constant has {constant:.3g}"
    said = [f"{headline}{_by_judge(config, judged, random, '.3g')}."]
    if error > HARDLY_BETTER * constant:
        said.append("The model is hardly better than a constant: it has learnt next to nothing.")
    if judged is not None and judged * LARGER > random:
        if judged > LARGER * max(error, metrics["judge_full_mae"]):
            said.append(
                f"The subgraph is a private code: an independent network errs by {judged:.3g} on "
                f"it, the model by {error:.3g}."
            )
        else:
            said.append(
                f"A random part of the same size is about as good (mean error {random:.3g}, the "
                f"chosen one {judged:.3g}): do not read the subgraph as a reason."
            )
    remedy = f"raise `tolerance` (it was {metrics.get('tolerance', 0):.3g})"
    if _is_dense(metrics, config):
        said.append(_too_dense(metrics, config, f"{remedy}, or train longer (`epochs`)"))
    if metrics.get("weak", 0) > MANY_WEAK:
        said.append(_too_weak(metrics, f"{remedy}, or train longer (`epochs`)"))
    if error > ERROR_COST * full:
        said.append(
            f"Sparsity costs {100 * (error / full - 1):.0f} % of the mean error: {full:.3g} on "
            f"full graphs, {error:.3g} on what is kept; lower `tolerance` to keep more."
        )
    if coverage is not None and metrics["interval_width"] is None:
        said.append(
            f"Prediction intervals have no ends: {known} calibration graphs are too few for alpha "
            f"= {metrics['alpha']:g} (needs {_needed(metrics['alpha'])})."
        )
    if coverage is not None:
        # Both parts are samples: chance moves the quantile as well as what is counted.
        chance = STANDARD_ERRORS * math.sqrt(promised * (1 - promised) * (1 / graphs + 1 / known))
        if coverage < promised - chance:
            said.append(
                f"Prediction intervals hold the true number of {_percent(coverage)} of the graphs, "
                f"not of {_percent(promised)}: these graphs are unlike the calibration part "
                f"({known} graphs)."
            )
    if graphs < SMALL_TEST:
        said.append(f"Measured on {graphs} test graphs: a few of them decide the error.")
    return said


def label_sentences(metrics: Metrics, config: RunConfig, calibration: Sequence[int]) -> list[str]:
    """Sentences on several labels, without their names, which come from data.

    ``calibration`` is the number of calibration graphs of which each label is known.
    """
    ranked, full, of_label = metrics["roc_auc"], metrics["full_roc_auc"], metrics["label_roc_auc"]
    judged, random = metrics["judge_roc_auc"], metrics["judge_random_roc_auc"]
    graphs, needed = metrics["test_graphs"], _needed(metrics["alpha"])

    reached = "undefined" if ranked is None else f"{ranked:.3f}"
    headline = (
        f"Mean ROC-AUC of {_count(len(of_label), 'label')} {reached}{_by_part(metrics, config)}; "
        f"{_percent(metrics['accuracy'])} of the known values are right, "
        f"{_percent(metrics['majority_rate'])} if the more frequent value of each label is guessed"
    )
    said = [f"{headline}{_by_judge(config, judged, random, '.3f')}."]
    if missing := sum(value is None for value in of_label.values()):
        said.append(
            f"{missing} of {len(of_label)} labels have one value alone among these graphs: their "
            "ROC-AUC is not defined, and no part of the mean."
        )
    if ranked is not None and ranked < LEAST_RANKING:
        said.append("The model is hardly better than guessing: train longer (`epochs`).")
    if judged is not None and ranked is not None:
        if min(ranked, metrics["judge_full_roc_auc"]) - judged > JUDGE_GAP:
            said.append(
                "The subgraph may be a code, not a reason: an independent network has a mean "
                f"ROC-AUC of {judged:.3f} on it, the model {ranked:.3f}."
            )
        elif judged - random < CHOSEN and kept_share(metrics, config)[0] <= DENSE:
            said.append(
                f"A random part of the same size is about as good (mean ROC-AUC {random:.3f}, the "
                f"chosen one {judged:.3f}): do not read the subgraph as a reason"
                f"{_for_more(config)}."
            )
    if _is_dense(metrics, config):
        said.append(_too_dense(metrics, config, _for_less(config)))
    if metrics.get("weak", 0) > MANY_WEAK:
        said.append(_too_weak(metrics, _less_sure(config)))
    if ranked is not None and full - ranked > SPARSITY_COST:
        said.append(
            f"Sparsity costs {full - ranked:.3f} of the mean ROC-AUC ({full:.3f} on full graphs)"
            f"{_for_full(metrics, config)}."
        )
    few = sum(count < needed for count in calibration)
    if metrics["coverage"] is not None and few:
        said.append(
            f"The sets of {few} of {len(calibration)} labels hold both values: fewer than {needed} "
            f"calibration graphs have a value of them, too few for alpha = {metrics['alpha']:g}."
        )
    if graphs < SMALL_TEST:
        said.append(f"Measured on {graphs} test graphs: a few of them decide the metrics.")
    return said


def _by_judge(config: RunConfig, judged: float | None, random: float | None, digits: str) -> str:
    """End of a headline: the judge on the subgraphs."""
    if config.spec.removes is None:
        return ""
    if judged is None:
        return "; no judge has checked the subgraphs"
    return (
        f"; an independent network has {judged:{digits}} on the same subgraphs, {random:{digits}} "
        "on random ones"
    )


def _by_part(metrics: Metrics, config: RunConfig) -> str:
    """The share that is kept, for a headline: what the model predicts from, or shows."""
    if config.spec.removes is None:
        return ""
    kept, what = kept_share(metrics, config)
    if not config.spec.has_policy or config.explanation.class_from == "part":
        return f" from {_percent(kept)} of the {what}"
    weak = metrics.get("weak", 0)
    told = f", and {_percent(weak)} of the graphs are weak" if weak else ""
    return f"; the parts that are shown keep {_percent(kept)} of the {what}{told}"


def _is_dense(metrics: Metrics, config: RunConfig) -> bool:
    """Return whether nearly everything is kept, though a policy chooses."""
    return config.spec.has_policy and kept_share(metrics, config)[0] > DENSE


def _too_dense(metrics: Metrics, config: RunConfig, remedy: str) -> str:
    """The share that is kept, and what to do."""
    kept, what = kept_share(metrics, config)
    epochs = max(0, metrics.get("epochs", config.training.epochs) - config.warm_up_epochs)
    why = ""
    if config.explanation.parts == "policy":
        why = f" after {_count(epochs, 'epoch')} of the policy"
        if epochs < ENOUGH_POLICY_EPOCHS:
            remedy = "train longer (`epochs`)"
    return f"Keeps {_percent(kept)} of the {what}{why}: {remedy}."


def _too_weak(metrics: Metrics, remedy: str) -> str:
    """The share of weak graphs, and what to do."""
    return (
        f"{_percent(metrics['weak'])} of the graphs are weak, what the search begins with is not "
        f"sure enough: {remedy}."
    )


def _for_less(config: RunConfig) -> str:
    """What to do for smaller parts."""
    if config.explanation.parts == "policy":
        return "lower `lam` or `desired_ratio`"
    if config.explanation.parts == "cut":
        return f'ask for `parts` "minimal", or {_less_sure(config)}'
    return _less_sure(config)


def _less_sure(config: RunConfig) -> str:
    """What to do where parts are not sure enough."""
    asked = config.explanation.sufficiency
    lower = f"lower `sufficiency` (it is {asked:g}), or " if asked > LEAST_SUFFICIENCY else ""
    return f"{lower}train longer (`epochs`)"


def _for_more(config: RunConfig) -> str:
    """What to do for surer parts."""
    if not config.spec.has_policy or config.explanation.parts == "policy":
        return ""
    return "; raise `sufficiency`, or train longer (`epochs`)"


def _for_full(metrics: Metrics, config: RunConfig) -> str:
    """What to do where the part tells less than the full graph."""
    if not config.spec.has_policy:
        return ""
    whole = ', or take the class from the whole graph (`class_from` "whole")'
    return f"; raise `lam` or `desired_ratio` to keep more{whole if 'weak' in metrics else ''}"


def kept_share(metrics: Metrics, config: RunConfig) -> tuple[float, str]:
    """The share of what the model removes that is kept; the smaller one where it removes both."""
    nodes, edges = (metrics["node_ratio"], "nodes"), (metrics["edge_ratio"], "edges")
    if config.spec.removes == "both":
        return min(nodes, edges)
    return edges if config.spec.removes == "edge" else nodes


def _needed(alpha: float) -> int:
    """The fewest calibration graphs that can rule something out."""
    return math.ceil(1 / Fraction(str(alpha))) - 1


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _points(share: float) -> str:
    return _count(round(100 * share), "point")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
