"""What a run's metrics say, in sentences: the headline first, what to be careful with after it.

Pure functions of metrics and settings. Needs no torch.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from cores.config import RunConfig
from cores.runs.label_verdict import label_sentences
from cores.runs.value_verdict import value_sentences

Kind = Literal[
    "one-class",
    "no-skill",
    "code",
    "random",
    "dense",
    "sparsity-cost",
    "fine",
    "sets",
    "coverage",
    "small-test",
    "promise",
]

STANDARD_ERRORS = 2.0
"""A difference of more standard errors than this is no noise: about 95 % confidence."""
JUDGE_GAP = 0.05
"""Smallest gap between model and judge that is worth a warning, however many the test graphs: two
networks trained apart differ by some points on the same graphs."""
SPARSITY_COST = 0.02
"""Smallest loss of accuracy by sparsity that is worth a sentence, however many the test graphs."""
MUCH = 0.2
"""A gap of this size between chosen and random subgraphs is called large."""
DENSE = 0.9
"""A policy that keeps more than this share has not chosen anything."""
ENOUGH_POLICY_EPOCHS = 30
"""A third of what the policy has by default; with fewer, a dense policy has hardly begun, and
nothing is wrong with its reward."""
IMBALANCED = 0.1
"""Where the largest class is this far above its equal share, accuracy hides what happens to the
others, and skill is read off the balanced accuracy."""
SMALL_TEST = 100
"""Below this, one graph is more than a point."""


@dataclass(frozen=True)
class Verdict:
    """A sentence about a run, and what it is about."""

    kind: Kind
    text: str
    """Names of arguments in it are in backticks."""


def verdicts(
    metrics: Mapping[str, Any], config: RunConfig, calibration: Sequence[int]
) -> list[Verdict]:
    """What the metrics of a run say.

    Args:
        metrics: As :func:`cores.runs.fit.measure` gives them, and ``epochs`` where they are known.
        config: The run's settings.
        calibration: Number of calibration graphs of every class.
    """
    num_classes = len(calibration)
    found = [
        *_skill(metrics, num_classes),
        *_honesty(metrics, config, num_classes),
        *_density(metrics, config),
        *_sparsity_cost(metrics, config),
    ]
    if not found:
        found = [_fine(metrics, config, num_classes)]
    return [
        *found,
        *_sets(metrics, config, calibration),
        *_coverage(metrics, calibration),
        *_small_test(metrics),
        *_no_promise(metrics),
    ]


def sentences(
    metrics: Mapping[str, Any], config: RunConfig, calibration: Sequence[int]
) -> list[str]:
    """The texts of :func:`verdicts`, as ``metrics.json`` holds them; other tasks have their own."""
    if "mae" in metrics:
        return value_sentences(metrics, config, sum(calibration))
    if "label_roc_auc" in metrics:
        return label_sentences(metrics, config, calibration)
    return [verdict.text for verdict in verdicts(metrics, config, calibration)]


def promise_sentence(found: Mapping[str, Any]) -> str:
    """What is promised of a model at the setting of its dial: how much, of whom, and by whom.

    Args:
        found: As :func:`cores.runs.promise.tuned_model` gives it.
    """
    whom = "Of every class" if found["per_class"] else "Of all graphs"
    what = {
        "excess": "are right on the full graph and wrong on the kept part",
        "disagreement": "get another class than on the full graph",
        "accuracy": "less are right than on the full graphs",
    }[found["loss"]]
    how = "on average over calibration parts"
    if found["confidence"] is not None:
        how = f"with a confidence of {100 * found['confidence']:g} %"
    return (
        f"{whom}, at most {100 * found['max_loss']:g} % {what}, {how}: promised at lambda "
        f"{found['lam']:g} by {found['graphs']:,} calibration graphs, for new graphs that are like "
        "them."
    )


def measured_before(metrics: Mapping[str, Any], lam: float) -> str:
    """That metrics are of another setting than the one at which the dial was set since."""
    return (
        f"Measured at lambda {metrics.get('lam', '?')}, before the dial was set to {lam:g}: "
        "`cores evaluate` measures the model there."
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
    """By what skill is read: the accuracy, or the balanced one where a class is frequent."""

    name: Literal["accuracy", "balanced_accuracy"]
    guessed: float
    """What predicting without looking reaches."""
    graphs: int | float
    """How many graphs of equal classes would leave it as uncertain."""

    @classmethod
    def of(cls, metrics: Mapping[str, Any], num_classes: int) -> "_Measure":
        graphs, largest = metrics["test_graphs"], metrics["majority_rate"]
        if not 1 / num_classes + IMBALANCED < largest < 1:
            return cls("accuracy", largest, graphs)
        effective = _balanced_graphs(graphs, largest, num_classes)
        return cls("balanced_accuracy", 1 / num_classes, effective)

    @property
    def words(self) -> str:
        """Its name, for people."""
        return self.name.replace("_", " ")

    @property
    def guess(self) -> str:
        """What has the value ``guessed``."""
        largest = "always predicting the largest class"
        return largest if self.name == "accuracy" else "guessing"

    def shows_skill(self, reached: float) -> bool:
        """Whether a value is above guessing, by more than chance."""
        return reached > self.guessed + STANDARD_ERRORS * _error(reached, self.graphs)

    def differ(self, higher: float, lower: float) -> bool:
        """Whether one value is above another, by more than chance."""
        return higher - lower > noise(higher, lower, self.graphs)


def _skill(metrics: Mapping[str, Any], num_classes: int) -> Iterator[Verdict]:
    """Whether the model has learnt anything."""
    if metrics["majority_rate"] == 1:  # graphs of one class cannot show it
        return
    if metrics["predicted_classes"] == 1:
        yield Verdict(
            "one-class",
            "Predicts one class only: train longer (`epochs`), or let rare classes count as much "
            'as others (training.balance="always").',
        )
        return
    measure = _Measure.of(metrics, num_classes)
    reached = metrics[measure.name]
    if not measure.shows_skill(reached):
        yield Verdict(
            "no-skill",
            f"Not shown to be better than {measure.guess}: {measure.words} {reached:.2f} against "
            f"{measure.guessed:.2f}.",
        )


def _balanced_graphs(graphs: int, largest: float, num_classes: int) -> float:
    """How many graphs of equal classes would make the balanced accuracy as uncertain.

    It is a mean over classes, and as uncertain as its smallest class makes it. The other classes
    are taken as equally large.

    >>> _balanced_graphs(100, 0.5, 2), round(_balanced_graphs(100, 0.9, 2), 3)
    (100.0, 36.0)
    """
    others = num_classes - 1
    return graphs * num_classes**2 / (1 / largest + others**2 / (1 - largest))


def _honesty(metrics: Mapping[str, Any], config: RunConfig, num_classes: int) -> Iterator[Verdict]:
    """Whether the subgraph can be read as a reason, by the independent classifier."""
    if metrics["judge_accuracy"] is None:
        return
    measure = _Measure.of(metrics, num_classes)
    judged, on_full, random = _judged(metrics, measure)
    gap = metrics[measure.name] - judged
    if gap > JUDGE_GAP and measure.differ(metrics[measure.name], judged):
        by = "" if measure.name == "accuracy" else f" in {measure.words}"
        below = f"The judge is {_points(gap)} below the model{by}"
        if measure.differ(on_full, judged):
            text = f"{below}: the subgraph may be a code, not a reason."
        else:  # it does not know the task, so it cannot say
            text = (
                f"{below}, and no better on full graphs ({on_full:.2f}): it cannot tell whether "
                "the subgraph is a reason."
            )
        yield Verdict("code", text)
    elif _kept(metrics, config)[0] <= DENSE and not measure.differ(judged, random):
        yield _no_choice(metrics, measure)


def _no_choice(metrics: Mapping[str, Any], measure: _Measure) -> Verdict:
    """Why the judge does no better on the chosen part than on a random one."""
    judged, on_full, random = _judged(metrics, measure)
    if metrics["majority_rate"] < 1 and not measure.shows_skill(on_full):
        return Verdict(
            "code",
            f"The judge is not shown to be better than {measure.guess} on full graphs "
            f"({measure.words} {on_full:.2f}): it cannot tell whether the subgraph is a reason.",
        )
    by = "" if measure.name == "accuracy" else f"{measure.words} "
    return Verdict(
        "random",
        f"A random part of the same size is as good, within noise ({by}{random:.2f}, the chosen "
        f"one {judged:.2f}): do not read the subgraph as a reason.",
    )


def _judged(metrics: Mapping[str, Any], measure: _Measure) -> tuple[float, float, float]:
    """The judge on the chosen parts, the full graphs, and random parts."""
    chosen, full, random = (
        metrics[f"judge_{seen}{measure.name}"] for seen in ("", "full_", "random_")
    )
    return chosen, full, random


def _density(metrics: Mapping[str, Any], config: RunConfig) -> Iterator[Verdict]:
    """Whether the policy removes anything."""
    kept, what = _kept(metrics, config)
    if not config.spec.has_policy or kept <= DENSE:
        return
    epochs = max(0, metrics.get("epochs", config.training.epochs) - config.warm_up_epochs)
    if epochs < ENOUGH_POLICY_EPOCHS:
        reason = f": the policy had {_count(epochs, 'epoch')}; train longer (`epochs`)"
    elif config.reward.dial:
        reason = (
            ": `cores curve` tells what sparser settings of the dial cost, and a `max_loss` above "
            f"{config.reward.max_loss:g} allows more"
        )
    else:
        reason = f" after {epochs} epochs of the policy: lower `lam` or `desired_ratio`"
    yield Verdict("dense", f"Keeps {_percent(kept)} of the {what}{reason}.")


def _sparsity_cost(metrics: Mapping[str, Any], config: RunConfig) -> Iterator[Verdict]:
    """What accuracy the removed part costs."""
    if config.spec.removes is None:
        return
    kept, full = metrics["accuracy"], metrics["full_accuracy"]
    if full - kept > max(SPARSITY_COST, noise(full, kept, metrics["test_graphs"])):
        remedy = "; raise `lam` or `desired_ratio` to keep more" if config.spec.has_policy else ""
        if config.reward.dial:
            remedy = "; `cores curve` tells which settings of the dial keep more"
        yield Verdict(
            "sparsity-cost",
            f"Sparsity costs {_points(full - kept)}: the classifier has {full:.2f} on full graphs, "
            f"{kept:.2f} on what is kept{remedy}.",
        )


def _fine(metrics: Mapping[str, Any], config: RunConfig, num_classes: int) -> Verdict:
    """The headline of a run with nothing to complain of."""
    measure = _Measure.of(metrics, num_classes)
    reached = f"{measure.words.capitalize()} {metrics[measure.name]:.2f}"
    if config.spec.removes is None:
        return Verdict("fine", f"{reached}; {measure.guess} has {measure.guessed:.2f}.")
    kept, what = _kept(metrics, config)
    headline = f"{reached} from {_percent(kept)} of the {what}"
    if metrics["judge_accuracy"] is None:
        return Verdict("fine", f"{headline}; no judge has checked the subgraphs.")
    judged, _, random = _judged(metrics, measure)
    worse = "much worse" if judged - random >= MUCH else "worse"
    return Verdict(
        "fine",
        f"{headline}; an independent classifier agrees on the same subgraphs ({judged:.2f}), and "
        f"does {worse} on random ones ({random:.2f}).",
    )


def _sets(
    metrics: Mapping[str, Any], config: RunConfig, calibration: Sequence[int]
) -> Iterator[Verdict]:
    """Whether there were enough calibration graphs for sets that leave a label out."""
    size, alpha = metrics["set_size"], metrics["alpha"]
    if size is None:
        return
    needed = math.ceil(1 / Fraction(str(alpha))) - 1
    counts = list(calibration) if config.sets.per_class else [sum(calibration)] * len(calibration)
    short = [count for count in counts if count < needed]
    if short:
        held = "every label"
        if len(short) < len(counts):
            held = f"{len(short)} of the {len(counts)} labels always"
        few = _count(min(short), "calibration graph")
        of_a_class = " of a class" if config.sets.per_class else ""
        verb = "is" if min(short) == 1 else "are"
        reason = f"{few}{of_a_class} {verb} too few for alpha = {alpha:g} (needs {needed})"
        yield Verdict("sets", f"Prediction sets hold {held}: {reason}.")
    elif size >= len(counts):
        yield Verdict(
            "sets",
            f"Prediction sets hold every label: the model is too unsure for alpha = {alpha:g}.",
        )


def _coverage(metrics: Mapping[str, Any], calibration: Sequence[int]) -> Iterator[Verdict]:
    """Whether the sets keep their promise on these graphs."""
    coverage, promised = metrics["coverage"], 1 - metrics["alpha"]
    if coverage is None:
        return
    if coverage < promised - STANDARD_ERRORS * _error(promised, metrics["test_graphs"]):
        yield Verdict(
            "coverage",
            f"Prediction sets hold the true label of {_percent(coverage)} of the graphs, not of "
            f"{_percent(promised)}: these graphs are unlike the calibration part, or that part "
            f"({_count(sum(calibration), 'graph')}) is too small.",
        )


def _small_test(metrics: Mapping[str, Any]) -> Iterator[Verdict]:
    """How far the numbers can be trusted."""
    graphs, accuracy = metrics["test_graphs"], metrics["accuracy"]
    if graphs < SMALL_TEST:
        chance = _points(noise(accuracy, accuracy, graphs))
        yield Verdict(
            "small-test",
            f"Measured on {_count(graphs, 'test graph')}: read differences below {chance} as "
            "noise.",
        )


def _no_promise(metrics: Mapping[str, Any]) -> Iterator[Verdict]:
    """Why a promise that was asked for could not be given."""
    reason = metrics.get("no_promise")
    if reason is not None:
        stands = (
            " The dial stands where the training set it; `cores tune` can promise another loss."
        )
        yield Verdict("promise", f"No promise: {reason}." + (stands if "lam" in metrics else ""))


def _kept(metrics: Mapping[str, Any], config: RunConfig) -> tuple[float, str]:
    """The share of what the model removes that is kept; the smaller one where it removes both."""
    nodes, edges = (metrics["node_ratio"], "nodes"), (metrics["edge_ratio"], "edges")
    if config.spec.removes == "both":
        return min(nodes, edges)
    return edges if config.spec.removes == "edge" else nodes


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _points(share: float) -> str:
    return _count(round(100 * share), "point")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
