"""Models registered for one test."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from cores.config.models import MODELS
from cores.config.registration import register_model
from cores.config.spec import ModelSpec
from cores.models.classifier import Classifier
from cores.plugins import load_plugins


@pytest.fixture(scope="session", autouse=True)
def _plugins() -> None:
    """Registers the baselines, whichever test comes first."""
    load_plugins()


@pytest.fixture
def _registry() -> Iterator[None]:
    """Puts the registry of models back after the test."""
    built_in = dict(MODELS)
    yield
    MODELS.clear()
    MODELS.update(built_in)


@pytest.fixture
def registered_model(_registry: None) -> ModelSpec:
    """A model that a script has registered."""

    class OwnModel(Classifier):
        pass

    register_model("own", OwnModel, title="Own & Co", removes="node")
    return MODELS["own"]


@pytest.fixture
def registered_policy(_registry: None) -> ModelSpec:
    """A second model with a policy that removes nodes."""
    spec = replace(
        MODELS["cores-node"],
        name="my-policy",
        title="My policy",
    )
    MODELS[spec.name] = spec
    return spec
