"""Every setting of a run, as frozen dataclasses checked once; they are also the command line.

The defaults of these classes are the ``default`` preset. Names follow one table for the whole
project (docs/architecture.md): the paper's symbols alpha, epsilon and K mean several things,
the names here do not.
"""

from cores.config.classifier import (
    TEST_SHARE,
    NetworkConfig,
    PartsConfig,
    RandomConfig,
    Reach,
    SetsConfig,
    TrainingConfig,
)
from cores.config.nested import from_dict, merged, to_dict
from cores.config.policy import (
    CommitteeConfig,
    EffectsConfig,
    ExplanationConfig,
    PPOConfig,
    RewardConfig,
)
from cores.config.run import RunConfig
from cores.config.spec import Removal

__all__ = [
    "TEST_SHARE",
    "CommitteeConfig",
    "EffectsConfig",
    "ExplanationConfig",
    "NetworkConfig",
    "PPOConfig",
    "PartsConfig",
    "RandomConfig",
    "Reach",
    "Removal",
    "RewardConfig",
    "RunConfig",
    "SetsConfig",
    "TrainingConfig",
    "from_dict",
    "merged",
    "to_dict",
]
