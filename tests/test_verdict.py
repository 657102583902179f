"""What the metrics of a run say in words: each sentence on both sides of its threshold."""

from dataclasses import replace
from typing import Any

import pytest

from cores.config import ExplanationConfig, RunConfig, SetsConfig, TrainingConfig
from cores.verdict import (
    DENSE,
    ENOUGH_POLICY_EPOCHS,
    JUDGE_GAP,
    MANY_WEAK,
    SMALL_TEST,
    class_findings,
    measured_before,
    promise_sentence,
)

GOOD: dict[str, Any] = {
    "accuracy": 0.98,
    "balanced_accuracy": 0.98,
    "majority_rate": 0.5,
    "predicted_classes": 2,
    "node_ratio": 0.31,
    "edge_ratio": 0.25,
    "full_accuracy": 0.98,
    "judge_accuracy": 0.97,
    "judge_full_accuracy": 0.99,
    "judge_random_accuracy": 0.62,
    "judge_balanced_accuracy": 0.97,
    "judge_full_balanced_accuracy": 0.99,
    "judge_random_balanced_accuracy": 0.62,
    "coverage": 0.93,
    "set_size": 1.0,
    "alpha": 0.1,
    "test_graphs": 200,
    "epochs": 270,
    "sufficiency": 0.8,
    "weak": 0.04,
}
POLICYS = RunConfig(
    training=TrainingConfig(epochs=270),
    explanation=ExplanationConfig(parts="policy", class_from="part"),
)
"""The part that the policy keeps is all that the classifier sees."""
CALIBRATION = (50, 50)


def said(
    config: RunConfig | None = None, calibration: tuple[int, ...] = CALIBRATION, **changes: Any
) -> dict[str, str]:
    """The sentences by kind."""
    return {**class_findings(GOOD | changes, config or RunConfig(), calibration)}


def test_a_good_run_gets_one_good_sentence() -> None:
    assert said() == {
        "fine": "Accuracy 0.98; the parts that are shown keep 31 % of the nodes, and 4 % of the "
        "graphs are weak; an independent classifier agrees on the same subgraphs (0.97), and does "
        "much worse on random ones (0.62)."
    }
    assert "keep 31 % of the nodes; an independent" in said(weak=0.0)["fine"]
    assert said(POLICYS)["fine"].startswith("Accuracy 0.98 from 31 % of the nodes; an independent")
    assert "does worse on random ones (0.85)" in said(judge_random_accuracy=0.85)["fine"]


def test_a_plain_network_and_one_without_a_judge_have_their_own_good_sentence() -> None:
    unjudged = dict.fromkeys(("judge_accuracy", "judge_full_accuracy", "judge_random_accuracy"))
    assert said(RunConfig(model="gnn"), **unjudged, node_ratio=1.0, edge_ratio=1.0) == {
        "fine": "Accuracy 0.98; always predicting the largest class has 0.50."
    }
    assert said(**unjudged)["fine"].endswith("no judge has checked the subgraphs.")


def test_a_model_with_one_answer_is_told() -> None:
    told = said(predicted_classes=1, accuracy=0.5, full_accuracy=0.5)
    assert told["one-class"].startswith("Predicts one class only")
    assert told["one-class"].endswith('count as much as others (training.balance="always").')
    assert "no-skill" not in told, "the same thing is said once"
    assert "fine" not in told
    assert "one-class" not in said(predicted_classes=2)
    assert "one-class" not in said(predicted_classes=1, majority_rate=1.0), "there is only one"


@pytest.mark.parametrize(("accuracy", "told"), [(0.56, True), (0.58, False)])
def test_skill_is_measured_against_the_largest_class(accuracy: float, told: bool) -> None:
    found = said(accuracy=accuracy, balanced_accuracy=accuracy, full_accuracy=accuracy)
    assert ("no-skill" in found) is told
    assert not told or found["no-skill"] == (
        "Not shown to be better than always predicting the largest class: accuracy 0.56 against "
        "0.50."
    )


@pytest.mark.parametrize(("balanced", "told"), [(0.6, True), (0.75, False)])
def test_with_unequal_classes_the_balanced_accuracy_decides(balanced: float, told: bool) -> None:
    found = said(accuracy=0.91, majority_rate=0.9, balanced_accuracy=balanced)
    assert ("no-skill" in found) is told
    assert not told or found["no-skill"].startswith("Not shown to be better than guessing: ")


@pytest.mark.parametrize(("below", "told"), [(JUDGE_GAP + 0.01, True), (JUDGE_GAP - 0.01, False)])
def test_a_judge_far_below_the_model_suspects_a_code(below: float, told: bool) -> None:
    found = said(judge_accuracy=0.98 - below, test_graphs=2000)
    assert found.get("code", "").startswith("The judge is 6 points below the model") is told
    assert ("fine" in found) is not told


def test_on_few_graphs_the_gap_must_be_larger() -> None:
    assert "code" not in said(judge_accuracy=0.9, test_graphs=30)
    assert "a code, not a reason" in said(judge_accuracy=0.6, test_graphs=30)["code"]


def test_a_judge_that_does_not_know_the_task_cannot_tell() -> None:
    assert "cannot tell" in said(judge_accuracy=0.7, judge_full_accuracy=0.71)["code"]


RARE: dict[str, Any] = {
    "majority_rate": 0.93,
    "accuracy": 0.88,
    "full_accuracy": 0.88,
    "balanced_accuracy": 0.85,
    "judge_accuracy": 0.93,
    "judge_full_accuracy": 0.93,
    "judge_random_accuracy": 0.93,
    "test_graphs": 1000,
}
"""A class of 7 %, and a judge that never says it."""


def judged_by_class(chosen: float, full: float, random: float) -> dict[str, Any]:
    return {
        "judge_balanced_accuracy": chosen,
        "judge_full_balanced_accuracy": full,
        "judge_random_balanced_accuracy": random,
    }


def test_with_unequal_classes_a_judge_that_always_says_the_same_cannot_tell() -> None:
    found = said(**RARE | judged_by_class(0.5, 0.5, 0.5))
    assert list(found) == ["code"]
    assert found["code"] == (
        "The judge is 35 points below the model in balanced accuracy, and no better on full graphs "
        "(0.50): it cannot tell whether the subgraph is a reason."
    )
    # nor where the model is no better
    unskilled = RARE | {"balanced_accuracy": 0.52}
    found = said(**unskilled | judged_by_class(0.5, 0.5, 0.5))
    assert list(found) == ["no-skill", "code"]
    assert found["code"].startswith("The judge is not shown to be better than guessing on full")


def test_with_unequal_classes_the_judges_balanced_accuracies_are_compared() -> None:
    found = said(**RARE | judged_by_class(0.84, 0.86, 0.6))
    assert found == {
        "fine": "Balanced accuracy 0.85; the parts that are shown keep 31 % of the nodes, and 4 % "
        "of the graphs are weak; an independent classifier agrees on the same subgraphs (0.84), "
        "and does much worse on random ones (0.60)."
    }
    found = said(**RARE | judged_by_class(0.84, 0.86, 0.83))
    assert "as good, within noise (balanced accuracy 0.83, the chosen one 0.84)" in found["random"]
    found = said(**RARE | judged_by_class(0.55, 0.86, 0.5))
    assert found["code"].endswith("the subgraph may be a code, not a reason.")
    plain = said(RunConfig(model="gnn"), **RARE | {"node_ratio": 1.0, "judge_accuracy": None})
    assert plain["fine"] == "Balanced accuracy 0.85; guessing has 0.50."


def test_a_judge_without_skill_says_nothing_of_random_parts() -> None:
    told = said(accuracy=0.5, full_accuracy=0.5, judge_accuracy=0.5, judge_full_accuracy=0.52,
                judge_random_accuracy=0.5)  # fmt: skip
    assert "random" not in told
    assert "cannot tell" in told["code"]
    # of graphs of one class, nobody can be better than guessing
    assert "random" in said(majority_rate=1.0, judge_random_accuracy=0.97)


@pytest.mark.parametrize(("random", "told"), [(0.94, True), (0.9, False)])
def test_a_random_part_as_good_is_no_reason(random: float, told: bool) -> None:
    found = said(judge_random_accuracy=random)
    assert ("random" in found) is told
    assert not told or found["random"].endswith(
        "; raise `sufficiency`, or train longer (`epochs`)."
    )
    assert said(POLICYS, judge_random_accuracy=0.94)["random"].endswith("as a reason.")
    # Where all is kept, a random part of that size is the same graph.
    assert "random" not in said(judge_random_accuracy=0.97, node_ratio=0.99)


def test_parts_that_are_nearly_everything_are_told_with_a_remedy() -> None:
    assert "dense" not in said(node_ratio=DENSE)
    assert said(node_ratio=0.97)["dense"] == (
        "Keeps 97 % of the nodes: lower `sufficiency` (it is 0.8), or train longer (`epochs`)."
    )
    least = RunConfig(explanation=ExplanationConfig(parts="cut", sufficiency=0.5))
    assert said(least, node_ratio=0.97)["dense"] == (
        'Keeps 97 % of the nodes: ask for `parts` "minimal", or train longer (`epochs`).'
    )
    assert "dense" not in said(RunConfig(model="sagpool"), node_ratio=0.97), "its ratio is set"


def test_a_policy_that_keeps_all_is_told_why() -> None:
    warm_up = POLICYS.warm_up_epochs
    few = said(POLICYS, node_ratio=0.97, epochs=warm_up + 10)["dense"]
    assert few == (
        "Keeps 97 % of the nodes after 10 epochs of the policy: train longer (`epochs`)."
    )
    enough = said(POLICYS, node_ratio=0.97, epochs=warm_up + ENOUGH_POLICY_EPOCHS)["dense"]
    assert "after 30 epochs of the policy: lower `lam` or `desired_ratio`." in enough
    measured_again = {name: value for name, value in GOOD.items() if name != "epochs"}
    found = class_findings(measured_again | {"node_ratio": 0.97}, POLICYS, CALIBRATION)
    assert f"after {270 - warm_up} epochs" in found["dense"]


def test_many_weak_graphs_are_told_with_a_remedy() -> None:
    assert "weak" not in said(weak=MANY_WEAK)
    assert said(weak=0.6)["weak"] == (
        "60 % of the graphs are weak, what the search begins with is not sure enough: lower "
        "`sufficiency` (it is 0.8), or train longer (`epochs`)."
    )
    least = RunConfig(explanation=ExplanationConfig(sufficiency=0.5))
    assert said(least, weak=0.6)["weak"].endswith("enough: train longer (`epochs`).")
    one = {name: value for name, value in GOOD.items() if name not in ("weak", "sufficiency")}
    assert "weak" not in class_findings(one, POLICYS, CALIBRATION)


@pytest.mark.parametrize(
    ("model", "nodes", "edges", "words"),
    [
        ("cores-edge", 1.0, 0.97, "97 % of the edges"),
        ("cores-both", 0.99, 0.95, "95 % of the edges"),
        ("cores-both", 0.95, 0.3, None),
    ],
)
def test_what_is_kept_is_what_could_be_removed(
    model: str, nodes: float, edges: float, words: str | None
) -> None:
    found = said(RunConfig(model=model), node_ratio=nodes, edge_ratio=edges)
    assert ("dense" in found) is (words is not None)
    assert words is None or words in found["dense"]


@pytest.mark.parametrize(("full", "told"), [(0.99, True), (0.92, False)])
def test_the_price_of_sparsity_is_told(full: float, told: bool) -> None:
    found = said(accuracy=0.9, judge_accuracy=0.9, full_accuracy=full)
    assert ("sparsity-cost" in found) is told
    assert not told or found["sparsity-cost"].startswith("Sparsity costs 9 points: ")
    assert not told or "`class_from`" in found["sparsity-cost"]


def test_too_few_calibration_graphs_are_told_and_how_many_it_needs() -> None:
    told = said(calibration=(6, 6), alpha=0.05, set_size=2.0)
    assert told["sets"] == (
        "Prediction sets hold every label: 12 calibration graphs are too few for alpha = 0.05 "
        "(needs 19)."
    )
    assert "fine" in told, "it does not concern the headline"
    assert "sets" not in said(calibration=(10, 9), alpha=0.05)
    assert "(needs 19)" in said(calibration=(9, 9), alpha=0.05, set_size=2.0)["sets"]


def test_with_a_quantile_per_class_the_rarest_class_decides() -> None:
    config = replace(RunConfig(), sets=SetsConfig(per_class=True))
    assert "sets" not in said(config, calibration=(50, 9))
    told = said(config, calibration=(50, 8))["sets"]
    assert "hold 1 of the 2 labels always: 8 calibration graphs of a class" in told
    assert "hold every label" in said(config, calibration=(5, 1))["sets"]


def test_full_sets_of_an_unsure_model_are_told() -> None:
    assert "too unsure for alpha = 0.1" in said(set_size=2.0)["sets"]
    assert "sets" not in said(set_size=None, coverage=None, calibration=(0, 0))


@pytest.mark.parametrize(
    ("coverage", "graphs", "told"),
    [(0.5, 1000, True), (0.87, 1000, True), (0.89, 1000, False), (0.87, 100, False)],
)
def test_sets_that_fail_to_cover_are_told(coverage: float, graphs: int, told: bool) -> None:
    found = said(coverage=coverage, test_graphs=graphs)
    assert ("coverage" in found) is told
    assert "fine" in found, "it does not concern the headline"
    assert "coverage" not in said(coverage=None, set_size=None)
    if coverage == 0.5:
        assert found["coverage"] == (
            "Prediction sets hold the true label of 50 % of the graphs, not of 90 %: these graphs "
            "are unlike the calibration part, or that part (100 graphs) is too small."
        )


def test_a_small_test_part_is_told_after_the_headline() -> None:
    assert "small-test" not in said(test_graphs=SMALL_TEST)
    found = said(test_graphs=14)
    assert list(found) == ["fine", "small-test"]
    assert found["small-test"] == (
        "Measured on 14 test graphs: read differences below 22 points as noise."
    )


def test_a_promise_says_how_much_of_whom_and_by_whom() -> None:
    found = {"sufficiency": 0.83, "max_wrong": 0.025, "per_class": True, "graphs": 1200}
    found |= {"confidence": None, "answered": 0.74, "observed_wrong": 0.02}
    assert promise_sentence(found) == (
        "Of every class, at most 2.5 % get a wrong class without being weak, on average over "
        "calibration parts: promised at a sufficiency of 0.83 by 1,200 calibration graphs, for new "
        "graphs that are like them. 74 % of the calibration graphs are not weak."
    )
    sure = promise_sentence(found | {"confidence": 0.9, "per_class": False})
    assert sure.startswith("Of all graphs, at most 2.5 % get a wrong class without being weak, ")
    assert "with a confidence of 90 %" in sure


def test_metrics_that_are_older_than_the_sufficiency_say_so() -> None:
    assert measured_before(GOOD, 0.83) == (
        "Measured at a sufficiency of 0.8, before it was set to 0.83: `cores evaluate` measures "
        "the model there."
    )
