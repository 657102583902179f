"""Networks with fresh weights, as a configuration asks for."""

from dataclasses import replace
from typing import cast

import torch
from torch import nn

from cores.config import RunConfig
from cores.config.models import conv_spec, need_task, preset_spec
from cores.data.dataset import Dims
from cores.errors import UserError
from cores.files.limits import MEMORY, told_size
from cores.models.classifier import Classifier
from cores.models.committee import Committee
from cores.models.elements import EffectNetwork
from cores.models.network import GraphModel
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier


def network_dims(config: RunConfig, dims: Dims) -> Dims:
    """Return the sizes of a network's inputs and outputs, quantiles included."""
    return replace(dims, quantile_alpha=config.alpha) if config.training.quantiles else dims


def build_model(config: RunConfig, dims: Dims) -> GraphModel:
    """The model of a configuration, if memory is likely to hold it."""
    need_task(config.model, dims.task)
    parts = config.spec.network, conv_spec(config.conv).layer
    if all(isinstance(part, str) for part in parts):  # a user's may need numbers to be built
        with torch.device("meta"):  # where tensors have a size, but take no memory
            weights = _built(config, dims).state_dict().values()
        size = sum(tensor.nbytes for tensor in weights)
        MEMORY.check(size, f"the weights of {config.model} need {told_size(size)}")
    return _built(config, dims)


def _built(config: RunConfig, dims: Dims) -> GraphModel:
    spec = config.spec
    if not spec.has_policy:
        own = () if spec.settings is None else (config.model_config,)
        shape = network_dims(config, dims), config.network, config.conv
        return cast(GraphModel, spec.network_class()(*shape, *own))
    first = build_classifier(config, dims)
    classifier: Committee | Classifier = first
    if preset_spec(config.preset).train is None:  # a preset's own training has one classifier
        others = range(config.committee.members - 1)
        classifier = Committee(
            [first, *(build_classifier(config, dims, first.scaler) for _ in others)]
        )
    policy = Policy(
        dims,
        config.network,
        config.conv,
        spec.removes or "node",
        config.ppo.initial_removal,
        config.ppo.min_probability,
        config.reward.max_pieces,
    )
    if config.explanation.units == "rings" and not dims.molecules:
        raise UserError("ring systems are units of molecules, read from SMILES or an SD file")
    return SparseClassifier(policy, classifier, dims.molecules).showing(config.explanation)


def build_classifier(config: RunConfig, dims: Dims, scaler: nn.Module | None = None) -> Classifier:
    """A classifier f_theta; with a scaler, it shares that one."""
    classifier = Classifier(network_dims(config, dims), config.network, config.conv)
    if scaler is not None:
        classifier.scaler = scaler
    return classifier


def build_effects(config: RunConfig, dims: Dims, scaler: nn.Module) -> EffectNetwork:
    """A network for the effects of removing elements, which shares a scaler."""
    network = EffectNetwork(dims, config.network, config.conv, config.spec.removes or "node")
    network.scaler = scaler
    return network
