"""What the metrics of a regression say."""

from typing import Any

import pytest

from cores.config import ExplanationConfig, RunConfig
from cores.verdict import value_sentences

GOOD: dict[str, Any] = {
    "mae": 0.5,
    "constant_mae": 1.5,
    "node_ratio": 0.4,
    "edge_ratio": 0.3,
    "full_mae": 0.48,
    "judge_mae": 0.55,
    "judge_full_mae": 0.5,
    "judge_random_mae": 0.9,
    "coverage": 0.9,
    "interval_width": 2.0,
    "alpha": 0.1,
    "tolerance": 0.8,
    "test_graphs": 500,
}
POLICYS = RunConfig(explanation=ExplanationConfig(parts="policy", class_from="part"))


def said(config: RunConfig | None = None, **changes: Any) -> list[str]:
    return value_sentences(GOOD | changes, config or RunConfig(), [500])


def test_a_good_model_has_a_headline_alone() -> None:
    (headline,) = said()
    assert headline == (
        "Mean error 0.5; the parts that are shown keep 40 % of the nodes; the best constant has "
        "1.5; an independent network has 0.55 on the same subgraphs, 0.9 on random ones."
    )
    (headline,) = said(POLICYS)
    assert headline.startswith("Mean error 0.5 from 40 % of the nodes; the best constant has 1.5")


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"node_ratio": 0.97}, "Keeps 97 % of the nodes: "),
        ({"weak": 0.6}, "60 % of the graphs are weak, "),
    ],
)
def test_parts_that_keep_too_much_or_say_too_little_are_told(
    changes: dict[str, float], start: str
) -> None:
    assert not any(line.startswith(start) for line in said())
    (line,) = [line for line in said(**changes) if line.startswith(start)]
    assert line.endswith("raise `tolerance` (it was 0.8), or train longer (`epochs`).")


def test_what_sparsity_costs_is_told_with_what_lowers_it() -> None:
    (line,) = [line for line in said(POLICYS, full_mae=0.25) if line.startswith("Sparsity")]
    assert line.startswith("Sparsity costs 100 % of the mean error: 0.25 on full graphs, 0.5 on ")
    assert line.endswith("lower `tolerance` to keep more.")


def test_what_shows_no_skill_or_no_reason_is_told() -> None:
    assert any("hardly better than a constant" in line for line in said(mae=1.4))
    assert any("private code" in line for line in said(judge_mae=1.2))
    assert any("A random part of the same size" in line for line in said(judge_random_mae=0.6))
