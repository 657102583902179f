"""The runs of version 0.2, whose presets have changed since."""

from collections.abc import Sequence

from cores.config import RunConfig, merged
from cores_paper.tables.targets import ABLATIONS, runs_of

EARLIER_DEFAULT = {
    "training": {"epochs": 240, "batch_size": 32},
    "classifier_data": {"warm_up": 0.5, "distillation": 0.8},
    "reward": {"dial": False, "target": "label", "desired_ratio": 0.3},
    "ppo": {"effect_steps": 0, "env_steps": 160, "batch_size": 32},
}
"""CORES at the ``default`` preset of version 0.2, with one lambda."""
EARLIER_PAPER = {
    "training": {"epochs": 300, "patience": 100},
    "classifier_data": {"distillation": 0.8},  # without referees it means nothing
    "reward": {"scale": 1.0},
}
"""CORES at its ``paper`` preset: shorter, and the published reward_scale left out."""

EARLIER = {"default": EARLIER_DEFAULT, "paper": EARLIER_PAPER}


def measured_runs(
    target: str,
    datasets: Sequence[str],
    models: Sequence[str],
    splits: Sequence[int],
    preset: str,
    seeds: Sequence[int] = (0,),
) -> list[RunConfig]:
    """The runs of a table or figure as version 0.2 measured them."""
    runs = runs_of(target, datasets, models, splits, preset, seeds=seeds)
    return [_as_measured(run, target) for run in runs]


def _as_measured(run: RunConfig, target: str) -> RunConfig:
    if run.preset not in EARLIER or not run.spec.has_policy:
        return run
    own = run.settings
    settings = merged(own, EARLIER[run.preset])
    if target in ABLATIONS:  # what it varies is its own
        ablation = ABLATIONS[target]
        varied = {name: own["reward"][name] for name in (*ablation.fixed, ablation.setting)}
        settings = merged(settings, {"reward": varied})
    return RunConfig.from_settings(settings)
