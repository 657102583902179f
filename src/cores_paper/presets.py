"""The published settings as data (one TOML file per model), and the presets made of them.

``paper`` puts them into Algorithm 1, ``authors`` into the schedule and the reward of the authors'
program, as far as these are known.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from cores import UserError
from cores.config import RunConfig, merged, to_dict
from cores.config.models import conv_spec, model_spec
from cores.errors import require
from cores_paper.models.settings import check_signs

FILES = {
    "gnn": "gnn.toml",
    "mlp": "gnn.toml",  # the shape and the rates of the GNN it is compared with
    "sagpool": "sagpool.toml",
    "diffpool": "diffpool.toml",
    "sugar": "sugar.toml",
    "gpool": "gpool.toml",
    "cores-node": "cores_node.toml",
    "cores-edge": "cores_edge.toml",
}
"""The file of a model's published settings and of what the paper reports."""


@dataclass(frozen=True)
class PaperConfig:
    """Algorithm 1 as published: what the tool's own training does not have.

    The classifier is trained on the policy's samples and rewards it, by APS scores (Eqs. 3, 4, 7);
    a critic is the baseline, and the ratio is that of a whole action (Eq. 1).
    """

    order: Literal["together", "in-turns"] = "together"
    """together: every epoch trains classifier and policy (Algorithm 1). in-turns: the classifier
    alone, on full graphs, until it stalls for ``training.patience`` epochs, then the policy alone,
    then the classifier on the policy's subgraphs, and so on (the authors)."""
    policy_patience: int = 5
    """in-turns: epochs without improvement that end the policy's turn (published as
    ppo_patience)."""
    stop_metric: Literal["loss", "reward"] = "loss"
    """in-turns: what has to improve in the policy's turn: PPO's mean loss or the mean reward
    (published as ppo_stop_metric)."""
    last_policy_epochs: int = 10
    """in-turns: the last epochs of the training, which are the policy's whatever stalls; at least
    one epoch is left to the classifier."""
    weights: Literal["best", "last"] = "best"
    """Which epoch's weights are kept: best on the selection split, or the last (the paper)."""
    scale: float = 1.0
    """Factor on the first case of Eq. 7: right, with one label in the set (published as
    reward_scale)."""
    square_sparsity: bool = False
    """Take the square of the sparsity reward wherever Eq. 7 has it (the authors)."""
    sets: Literal["at-most", "below-or-predicted"] = "at-most"
    """Labels of the reward's sets: those whose score is at most the quantile (Eq. 3), or those
    whose score is below it and the predicted one, which is in every set then (the authors)."""
    penalise_full: bool = False
    """Subtract ``reward.penalty_size`` where nothing was removed, too (the authors)."""
    critic_learning_rate: float = 1e-3
    """Adam's step size for the critic at the start."""
    schedule_factor: float = 0.99
    """Factor on the rates of policy and critic when the reward stalls."""
    value_coef: float = 0.5
    """Weight of the critic's loss."""

    def __post_init__(self) -> None:
        for name in ("policy_patience", "last_policy_epochs"):
            value = getattr(self, name)
            require(1 <= value < 2**31, f"paper.{name} must be at least 1, got {value}")
        check_signs("paper", self, "scale critic_learning_rate", "value_coef")
        require(
            0 < self.schedule_factor < 1,
            f"paper.schedule_factor must lie in (0, 1), got {self.schedule_factor}",
        )


READ = {
    "committee": (),
    "reward": ("lam", "alpha", "desired_ratio", "penalty_size"),
    "ppo": (
        *("env_steps", "samples", "ppo_epochs", "batch_size", "clip", "learning_rate"),
        *("entropy_coef", "final_entropy_coef", "initial_removal", "min_probability"),
    ),
    "effects": (),
    "explanation": (),
}
"""Settings of policies that the published training reads; it ignores all others of these groups."""
OFF: dict[str, dict[str, Any]] = {
    "training": {"class_weights": False, "logit_adjustment": 0.0},
    "committee": {"members": 1, "warm_up": 0.0},
    "explanation": {"parts": "policy", "class_from": "part", "sufficiency": 0.5},
    "ppo": {"effect_steps": 0, "max_grad_norm": 0.0, "max_kl": 0.0, "ema_decay": 0.0},
    "effects": {"steps": 0},
}
"""Settings that switch off what the published training does not have."""


def fixed_settings() -> dict[str, dict[str, Any]]:
    """Settings that the published training ignores: switched off, or at their defaults."""
    defaults = to_dict(RunConfig())
    unread = {
        group: {name: value for name, value in defaults[group].items() if name not in names}
        for group, names in READ.items()
    }
    return merged(unread, OFF)


def published_file(name: str) -> dict[str, Any]:
    """Read one of the TOML files of published settings and numbers."""
    text = resources.files("cores_paper").joinpath("published", name).read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def published(model: str) -> dict[str, dict[str, Any]]:
    """Published settings of a model: dataset, then conv, then groups of settings.

    Beside the settings stands what the paper reports, under names that begin with ``reported_``.
    """
    file = FILES.get(model)
    sections = published_file(file) if file is not None else {}
    common = sections.pop("common", None)
    if common is None:
        return sections
    plain = published("gnn")
    return {
        dataset: {
            conv: merged(merged(_settings(plain[dataset][conv]), common), section)
            for conv, section in convs.items()
        }
        for dataset, convs in sections.items()
    }


def _settings(section: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if not name.startswith("reported_")}


@cache
def has_published_settings(model: str) -> bool:
    """Return whether the paper gives settings for a model; of some it reports results only."""
    sections = published(model).values()
    return any(_settings(section) for convs in sections for section in convs.values())


def search_space(config: RunConfig) -> dict[str, list[Any]]:
    """Values to choose from for a configuration like this one, by setting."""
    space = published_file("search.toml")
    spec, conv = config.spec, conv_spec(config.conv)
    if spec.has_policy:
        found = dict(space["cores"])
        if config.preset_settings is not None:
            found |= space["critic"]
    else:
        found = dict(space["gnn"]) | (dict(conv.search) if spec.uses_conv else {})
    found |= spec.search
    if config.preset != "default":
        found |= space["paper"]
    return {name: list(values) for name, values in found.items() if values}


def paper_settings(model: str, dataset: str, conv: str) -> dict[str, Any]:
    """Return the published settings, without edge features."""
    section = published(model).get(dataset, {}).get(conv)
    if section is None or not has_published_settings(model):
        raise UserError(
            f'the paper has no settings for {model} with {conv} on {dataset}; use preset="default"'
        )
    return merged({"network": {"edge_features": False}}, _settings(section))


def authors_settings(model: str, dataset: str, conv: str) -> dict[str, Any]:
    """The published settings in the authors' schedule; of the control, those of the plain GNN."""
    if not has_authors_settings(model):
        raise UserError(
            f"the authors preset is one of CORES, and of random beside it, not of {model}; use "
            'preset="paper"'
        )
    changes, plain = published_file("authors.toml"), paper_settings("gnn", dataset, conv)
    if not model_spec(model).has_policy:
        return merged(plain, changes[model])
    patience = {"training": {"patience": plain["training"]["patience"]}}
    settings = merged(paper_settings(model, dataset, conv), patience)
    return merged(merged(settings, changes["common"]), changes[model][dataset][conv])


@cache
def has_authors_settings(model: str) -> bool:
    """Return whether the ``authors`` preset has the model: CORES of the paper, and the control."""
    return model in published_file("authors.toml").keys() - {"common"}
