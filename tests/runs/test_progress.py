"""Progress names the phase, knows the time left for all phases, and suits a log."""

import sys
from collections.abc import Iterator

import pytest

from cores.config import RunConfig
from cores.config.presets import preset_config
from cores.runs import progress
from cores.runs.progress import Pace, Phase, phases_of, training_progress

PHASES = [Phase("classifier", 10, 4.0), Phase("policy", 10, 4.0), Phase("judge", 100, 1.0)]


def stamps(*seconds: float) -> Iterator[float]:
    return iter(seconds)


def test_a_policy_costs_less_than_classifiers_of_many_graphs_and_a_judge_sees_no_more_of_them() -> (
    None
):
    """What is said of the time left before a phase has begun."""
    few, many = (
        {phase.name: phase for phase in phases_of(RunConfig(), num_graphs=number)}
        for number in (200, 10_000)
    )
    assert few["policy"].cost > few["classifier"].cost
    assert many["policy"].cost < many["classifier"].cost / 3
    assert many["judge"].cost * 150 == 30 * 10_000


def test_every_model_has_its_phases() -> None:
    def names(**settings: object) -> list[str]:
        return [phase.name for phase in phases_of(RunConfig.from_settings(settings))]

    assert names() == ["classifier", "policy", "effects", "judge"]
    assert names(effects={"steps": 0}) == ["classifier", "policy", "judge"]
    assert names(model="gnn") == ["training"]
    assert names(model="sagpool") == ["training", "judge"]
    paper = preset_config("MUTAG", "cores-node", "gin", "paper", {})
    phases = [phase.name for phase in phases_of(paper)]
    assert phases == ["classifier and policy", "judge"], "effects are learnt from the members"
    assert [phase.name for phase in phases_of(RunConfig(), judged=False)][-1] == "effects"


def test_the_time_left_is_that_of_all_phases_each_at_its_own_pace() -> None:
    clock = stamps(100.0, 108.0, 110.0, 112.0, 113.0)
    pace = Pace(PHASES, now=lambda: next(clock))
    pace.advance(0, 1)
    assert pace.left is None, "nobody knows when the first epoch began"
    pace.advance(0, 2)  # 8 seconds for 4 networks: 2 for the judge's one
    assert pace.left == 8 * 8 + 10 * 8 + 100 * 2
    pace.advance(1, 1)  # patience ran out; an epoch of the policy takes 2
    assert pace.left == 9 * 2 + 100 * 0.5
    pace.advance(2, 1)
    pace.advance(2, 2)
    assert pace.left == 98 * 1


def test_what_a_phase_prepares_counts_once() -> None:
    clock = stamps(0.0, 8.0, 16.0, 1016.0, 1018.0, 1020.0)
    pace = Pace(PHASES, now=lambda: next(clock))
    for epoch in (1, 2, 3):
        pace.advance(0, epoch)
    pace.advance(1, 1)  # the first epoch of the policy took 1000 seconds, the second 2
    assert pace.left == 9 * 8 + 100 * 2
    pace.advance(1, 2)
    pace.advance(1, 3)
    assert pace.left == 7 * 2 + 100 * 0.5


def test_a_run_that_resumes_and_a_judge_from_the_cache_count_as_done() -> None:
    clock = stamps(0.0, 3.0)
    pace = Pace(PHASES, now=lambda: next(clock))
    pace.skip(2)
    pace.advance(1, 6)
    pace.advance(1, 7)
    assert pace.left == 3 * 3.0
    assert pace.share == pytest.approx(117 / 120)


def test_a_log_gets_a_line_now_and_then_and_at_the_end_of_a_phase(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    phases = [Phase("classifier", 40, 1.0), Phase("policy", 40, 1.0), Phase("judge", 20, 1.0)]
    with training_progress("cores-node on motifs", phases) as reports:
        for epoch in range(1, 81):
            reports.training(epoch, {"loss": 0.5} if epoch <= 40 else {"reward": 0.25})
        for epoch in range(1, 21):
            reports.judge(epoch, {"loss": 0.125})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("cores-node on motifs: classifier 10/40, loss 0.500")
    assert lines[4].startswith("cores-node on motifs: policy 10/40, reward 0.250")
    assert lines[-1] == "cores-node on motifs: judge 20/20, loss 0.125"
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    with training_progress("slow", phases) as reports:
        reports.training(1, {})
    assert capsys.readouterr().err == "slow: classifier 1/40\n", "enough time has passed"


def test_a_terminal_gets_a_bar_for_every_phase_that_begins(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with training_progress("[b]mine", PHASES) as reports:
        reports.judge(100, {})  # from the cache
        for epoch in range(1, 12):
            reports.training(epoch, {"loss": 0.5, "selection_ratio": 0.25})
    text = capsys.readouterr().err
    assert "[b]mine" in text
    for words in ("classifier", "10/10", "policy", "1/10", "kept 0.250", "left"):
        assert words in text, words
    assert "judge" not in text


def test_nothing_is_shown_before_the_first_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    with training_progress("mine", PHASES) as reports:
        reports.judge(100, {})
    assert capsys.readouterr().err == ""
