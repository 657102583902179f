"""What the metrics of a regression say."""

from typing import Any

import pytest

from cores.config import RewardConfig, RunConfig
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
DIAL = RunConfig(reward=RewardConfig(dial=True))
NO_DIAL = RunConfig(reward=RewardConfig(dial=False))


def said(config: RunConfig = NO_DIAL, **changes: Any) -> list[str]:
    return value_sentences(GOOD | changes, config, [500])


def test_a_good_model_has_a_headline_alone() -> None:
    (headline,) = said()
    assert headline == (
        "Mean error 0.5 from 40 % of the nodes; the best constant has 1.5; an independent network "
        "has 0.55 on the same subgraphs, 0.9 on random ones."
    )


@pytest.mark.parametrize(
    ("config", "remedy"),
    [
        (NO_DIAL, "raise `tolerance` (it was 0.8), or train longer (`epochs`)."),
        (DIAL, "a reward.max_loss above 0.02 allows more."),
    ],
)
def test_a_policy_that_keeps_all_is_told_what_moves_it(config: RunConfig, remedy: str) -> None:
    assert not any(line.startswith("Keeps") for line in said(config))
    (line,) = [line for line in said(config, node_ratio=0.97) if line.startswith("Keeps")]
    assert line.startswith("Keeps 97 % of the nodes: ")
    assert line.endswith(remedy)


@pytest.mark.parametrize(("config", "lower"), [(NO_DIAL, "`tolerance`"), (DIAL, "reward.max_loss")])
def test_what_sparsity_costs_is_told_with_what_lowers_it(config: RunConfig, lower: str) -> None:
    (line,) = [line for line in said(config, full_mae=0.25) if line.startswith("Sparsity")]
    assert line.startswith("Sparsity costs 100 % of the mean error: 0.25 on full graphs, 0.5 on ")
    assert line.endswith(f"lower {lower} to keep more.")


def test_what_shows_no_skill_or_no_reason_is_told() -> None:
    assert any("hardly better than a constant" in line for line in said(mae=1.4))
    assert any("private code" in line for line in said(judge_mae=1.2))
    assert any("A random part of the same size" in line for line in said(judge_random_mae=0.6))
