"""All that decides the numbers of a run."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cores.config.classifier import NetworkConfig, PartsConfig, SetsConfig, TrainingConfig
from cores.config.models import MODELS, PRESETS, conv_spec, model_spec, preset_spec
from cores.config.nested import from_dict, merged, run_key, to_dict
from cores.config.policy import (
    CommitteeConfig,
    EffectsConfig,
    ExplanationConfig,
    PPOConfig,
    RewardConfig,
)
from cores.config.spec import ModelSpec, Removal, Settings
from cores.errors import require
from cores.plugins import load_plugins

AskedTask = Literal["auto", "classification", "regression", "multilabel"]

POLICY_GROUPS = ("committee", "reward", "ppo", "effects", "explanation")
"""Groups of settings that models with a policy use."""


@dataclass(frozen=True)
class RunConfig:
    """One training run: what decides its numbers, and nothing else (no paths, no device)."""

    dataset: str = "motifs"
    """A dataset's name (`cores datasets`), or the path of a file or folder: csv, tsv, parquet, sdf,
    jsonl, npz, pt, TU zip or folder."""
    model: str = "cores-node"
    """What to train: cores-node, cores-edge and cores-both remove nodes, undirected edges or both;
    gnn is the plain network, mlp the one blind to edges; random keeps a random part."""
    conv: str = "gin"
    """Message-passing layer: gin, gcn or gat."""
    preset: str = "default"
    """Settings to begin with; default: one setting for all datasets."""
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
    committee: CommitteeConfig = field(default_factory=CommitteeConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    effects: EffectsConfig = field(default_factory=EffectsConfig)
    explanation: ExplanationConfig = field(default_factory=ExplanationConfig)
    model_config: Any = None
    """The model's own settings, of the dataclass in its row; None for a model without."""
    preset_settings: Any = None
    """The preset's own settings, likewise; None for a model without a policy."""

    def __post_init__(self) -> None:
        conv_spec(self.conv)
        preset_spec(self.preset)
        self._check_own("model_config", self.spec.settings)
        self._check_own("preset_settings", self.preset_own)
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
        self._check_fixed()
        if self.removal is None or preset_spec(self.preset).train is not None:
            return
        require(
            self.warm_up_epochs > 0,
            "the classifiers learn in the warm-up only: raise committee.warm_up or `epochs`, "
            f"got {self.committee.warm_up} of {self.training.epochs}",
        )
        require(
            self.explanation.proposer == "policy" or self.effects.steps > 0,
            'the proposer "effects" needs their network: raise effects.steps',
        )
        samples = self.ppo.samples
        require(samples > 1, f"ppo.samples must be at least 2, got {samples}")

    def _check_own(self, name: str, kind: type | None) -> None:
        """Fill in or check the settings that belong to the model or the preset alone."""
        if getattr(self, name) is None and kind is not None:
            object.__setattr__(self, name, kind())
        value = getattr(self, name)
        require(
            value is None if kind is None else type(value) is kind,
            f"`{name}` holds settings of another model or preset",
        )

    def _check_fixed(self) -> None:
        """Refuse settings that the training of the preset would ignore."""
        for group, values in self._fixed.items():
            for name, value in values.items():
                found = getattr(getattr(self, group), name)
                require(
                    found == value,
                    f"the preset {self.preset} trains without {group}.{name}, got {found}",
                )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "RunConfig":
        """Build it from nested plain data, as in files.

        The groups of models and presets other than those chosen are checked and left out.
        """
        values = dict(settings)
        model, chosen = (values.get(name, getattr(cls, name)) for name in ("model", "preset"))
        spec = model_spec(model if isinstance(model, str) else cls.model)
        preset = preset_spec(chosen if isinstance(chosen, str) else cls.preset)
        own: dict[str, Any] = {}
        for group, kind in own_groups().items():
            if group not in values:
                continue
            checked: Any = from_dict(kind, _group(values.pop(group), group), group)
            if group == spec.group:
                own["model_config"] = checked
            elif group == preset.group and spec.has_policy:
                own["preset_settings"] = checked
        if spec.has_policy:
            values = merged(preset.fixed, values)
        built = from_dict(cls, values, hidden=("model_config", "preset_settings"))
        return dataclasses.replace(built, **own)

    @property
    def spec(self) -> ModelSpec:
        """The model's row."""
        return model_spec(self.model)

    @property
    def preset_own(self) -> type | None:
        """The dataclass of the preset's own settings, for a model with a policy."""
        return preset_spec(self.preset).own if self.spec.has_policy else None

    @property
    def _fixed(self) -> Settings:
        """Settings that the preset's training does not read, nested."""
        return preset_spec(self.preset).fixed if self.spec.has_policy else {}

    @property
    def samples(self) -> bool:
        """Return whether the model predicts from a sample of its policy, not from the mode."""
        return self.spec.has_policy and preset_spec(self.preset).samples

    @property
    def removal(self) -> Removal | None:
        """What the policy removes; None for a model without a policy."""
        return self.spec.removes if self.spec.has_policy else None

    @property
    def warm_up_epochs(self) -> int:
        """Epochs before the policy of a CORES model begins: one at least, and one is left."""
        share, epochs = self.committee.warm_up, self.training.epochs
        return min(max(int(share * epochs), int(share > 0)), epochs - 1)

    @property
    def effect_steps(self) -> int:
        """Gradient steps for the effects of removing elements, all in all."""
        if self.removal is None:
            return 0
        return self.effects.steps * (self.training.epochs - self.warm_up_epochs)

    @property
    def warm_up_key(self) -> str | None:
        """Names what the warm-up depends on; None where it is not apart from the rest.

        There is no reward in it, and nothing of what is shown after training. A policy that keeps
        few pieces shows less of a graph even before it has learnt anything, though.
        """
        if self.removal is None or preset_spec(self.preset).train is not None:
            return None
        kept = RewardConfig(max_pieces=self.reward.max_pieces)
        shown = ExplanationConfig()
        return dataclasses.replace(self, reward=kept, explanation=shown).key

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as plain nested data, without the groups that the model does not use."""
        return self._settings()

    def _settings(self, for_key: bool = False) -> dict[str, Any]:
        plain = to_dict(self, for_key)
        own, of_preset = plain.pop("model_config"), plain.pop("preset_settings")
        if of_preset is not None:
            plain[preset_spec(self.preset).group] = of_preset
        if not self.spec.has_policy:
            for group in POLICY_GROUPS:
                del plain[group]
        for group, values in self._fixed.items():
            plain[group] = {name: each for name, each in plain[group].items() if name not in values}
            if not plain[group]:
                del plain[group]
        return plain | ({self.spec.group: own} if self.spec.settings is not None else {})

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings that the model has where nothing is said, nested."""
        usual = {"model": self.model, "training": dict(self.spec.training)}
        found = RunConfig.from_settings(usual).settings
        if self.preset_own is not None:
            found[preset_spec(self.preset).group] = to_dict(self.preset_own())
        return found

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
        return run_key(self._settings(for_key=True))


def own_groups() -> dict[str, type]:
    """Return the groups of settings that belong to single models or presets."""
    load_plugins()
    of_models = {row.group: row.settings for row in MODELS.values() if row.settings is not None}
    of_presets = {row.group: row.own for row in PRESETS.values() if row.own is not None}
    return of_models | of_presets


def _group(value: Any, group: str) -> Mapping[str, Any]:
    require(isinstance(value, Mapping), f"setting {group!r} is a group of settings, got {value!r}")
    return value
