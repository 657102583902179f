"""All that decides the numbers of a run."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cores.config.checks import require
from cores.config.classifier import NetworkConfig, PartsConfig, SetsConfig, TrainingConfig
from cores.config.key import run_key, schema
from cores.config.models import MODELS, conv_spec, model_spec
from cores.config.names import INTRODUCED_AS
from cores.config.nested import from_dict, to_dict
from cores.config.policy import (
    ClassifierDataConfig,
    EffectsConfig,
    PhasesConfig,
    PPOConfig,
    RewardConfig,
)
from cores.config.spec import ModelSpec, Removal

Preset = Literal["default", "paper", "authors"]
AskedTask = Literal["auto", "classification", "regression", "multilabel"]

POLICY_GROUPS = ("classifier_data", "phases", "reward", "ppo", "effects")
"""Groups of settings that models with a policy use."""


@dataclass(frozen=True)
class RunConfig:
    """One training run: what decides its numbers, and nothing else (no paths, no device)."""

    dataset: str = "motifs"
    """A dataset's name (`cores datasets`), or the path of a file or folder: csv, tsv, parquet, sdf,
    jsonl, npz, pt, TU zip or folder."""
    model: str = "cores-node"
    """What to train: cores-node, cores-edge and cores-both remove nodes, undirected edges or both;
    gnn is the plain network, mlp the one blind to edges; sagpool, gpool, diffpool, sugar, gsat and
    gmt are baselines; random keeps a random part."""
    conv: str = "gin"
    """Message-passing layer: gin, gcn or gat."""
    preset: Preset = "default"
    """default: one setting for all datasets; paper: the published one per dataset and conv, in
    Algorithm 1; authors: the published one in the schedule of the authors' program."""
    task: AskedTask = "auto"
    """What is predicted of a graph: one of several classes, a number (regression), or several
    labels of two values each (multilabel); auto: a number where the labels are more than 20
    different numbers that are not whole, several labels where several columns are named."""
    split: int = 1
    """Number of the split, 1 or more; decides who may look at which graphs."""
    seed: int = 0
    """Seed of initial weights, batch order and dropout."""
    alpha: float = 0.1
    """Error rate of the prediction sets shown to users: they miss the true label at most this
    often, on average over draws of calibration and test graphs."""
    sets: SetsConfig = field(default_factory=SetsConfig)
    parts: PartsConfig = field(default_factory=PartsConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    classifier_data: ClassifierDataConfig = field(default_factory=ClassifierDataConfig)
    phases: PhasesConfig = field(default_factory=PhasesConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    effects: EffectsConfig = field(default_factory=EffectsConfig)
    model_config: Any = None
    """The model's own settings, of the dataclass in its row; None for a model without."""

    def __post_init__(self) -> None:
        conv_spec(self.conv)
        own = self.spec.settings
        if self.model_config is None and own is not None:
            object.__setattr__(self, "model_config", own())
        require(
            self.model_config is None if own is None else type(self.model_config) is own,
            f"`model_config` holds settings of another model than {self.model}",
        )
        require(self.split >= 1, f"`split` counts from 1, got {self.split}")
        require(self.split < 2**63, f"`split` must be below 2^63, got {self.split}")
        require(
            self.parts.folds == 0 or self.split <= self.parts.folds,
            f"`split` is the number of one of {self.parts.folds} folds, got {self.split}",
        )
        require(0 <= self.seed < 2**63, f"`seed` must lie in [0, 2^63), got {self.seed}")
        require(0 < self.alpha < 1, f"`alpha` must lie in (0, 1), got {self.alpha}")
        width, heads = self.network.hidden_dim, self.network.gat_heads
        require(
            self.conv != "gat" or width % heads == 0,
            f"network.hidden_dim must be a multiple of gat_heads, got {width} and {heads}",
        )
        require(
            self.removal is None or self.classifier_data.mix < 1 or self.warm_up_epochs > 0,
            "at `mix` 1 the classifier learns in the warm-up only: raise classifier_data.warm_up "
            f"or `epochs`, got {self.classifier_data.warm_up} of {self.training.epochs}",
        )
        in_turns = self.removal is not None and self.phases.order == "in-turns"
        require(
            not in_turns
            or (
                self.classifier_data.mix
                == self.classifier_data.warm_up
                == self.reward.referees
                == 0
                and self.ppo.baseline == "critic"
            ),
            "phases.order in-turns needs a critic, and no random masks, warm-up or referees: set "
            "ppo.baseline to critic, and `mix`, classifier_data.warm_up and reward.referees to 0",
        )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "RunConfig":
        """Build it from nested plain data, as in files.

        The groups of models other than the one chosen are checked and left out.
        """
        values = dict(settings)
        chosen = values.get("model", cls.model)
        spec = model_spec(chosen) if isinstance(chosen, str) else model_spec(cls.model)
        own: Any = None
        for group, kind in model_groups().items():
            if group in values:
                checked: Any = from_dict(kind, _group(values.pop(group), group), group)
                own = checked if group == spec.group else own
        built = from_dict(cls, values, hidden=("model_config",))
        return built if own is None else dataclasses.replace(built, model_config=own)

    @property
    def spec(self) -> ModelSpec:
        """The model's row."""
        return model_spec(self.model)

    @property
    def removal(self) -> Removal | None:
        """What the policy removes; None for a model without a policy."""
        return self.spec.removes if self.spec.has_policy else None

    @property
    def warm_up_epochs(self) -> int:
        """Epochs before the policy of a CORES model begins: one at least, and one is left."""
        share, epochs = self.classifier_data.warm_up, self.training.epochs
        return min(max(int(share * epochs), int(share > 0)), epochs - 1)

    @property
    def effect_steps(self) -> int:
        """Gradient steps for the effects of removing elements, all in all."""
        if self.removal is None or self.reward.referees == 0:
            return 0
        return self.effects.steps * (self.training.epochs - self.warm_up_epochs)

    @property
    def warm_up_key(self) -> str | None:
        """Names what the warm-up depends on; None where it is not apart from the rest.

        At ``mix`` 1 the classifiers learn in the warm-up alone, and there is no reward in it. A
        policy that sees lambda has another shape, though, and one that keeps few pieces shows less
        of a graph even before it has learnt anything.
        """
        if self.removal is None or self.classifier_data.mix < 1:
            return None
        given = self.reward
        kept = RewardConfig(
            referees=given.referees,
            dial=given.dial,
            target=given.target,
            max_pieces=given.max_pieces,
        )
        return dataclasses.replace(self, reward=kept).key

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as plain nested data, without the groups that the model does not use."""
        plain = to_dict(self)
        own = plain.pop("model_config")
        if not self.spec.has_policy:
            for group in POLICY_GROUPS:
                del plain[group]
        return plain | ({self.spec.group: own} if self.spec.settings is not None else {})

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings that the model has where nothing is said, nested."""
        usual = {"model": self.model, "training": dict(self.spec.training)}
        return RunConfig.from_settings(usual).settings

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that differ from the model's defaults, nested."""
        defaults = self.defaults
        found: dict[str, Any] = {}
        for name, value in self.settings.items():
            if isinstance(value, Mapping):
                changed = {key: new for key, new in value.items() if new != defaults[name][key]}
                found |= {name: changed} if changed else {}
            elif value != defaults[name]:
                found[name] = value
        return found

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits that name this configuration, now and in later versions."""
        return run_key(self.settings, INTRODUCED_AS, schema())


def model_groups() -> dict[str, type]:
    """The groups of settings that belong to single models, and their dataclasses."""
    return {row.group: row.settings for row in MODELS.values() if row.settings is not None}


def _group(value: Any, group: str) -> Mapping[str, Any]:
    require(isinstance(value, Mapping), f"setting {group!r} is a group of settings, got {value!r}")
    return value
