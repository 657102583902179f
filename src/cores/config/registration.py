"""Models, layers, presets and commands that others add to the tables. Needs no torch."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from cores.config.models import CONVS, LAST, MODELS, NO_MESSAGES, PRESETS
from cores.config.nested import from_dict, to_dict
from cores.config.run import RunConfig, own_groups
from cores.config.spec import ConvSpec, ModelSpec, PresetSpec, Removal, Settings
from cores.errors import UserError


def register_model(
    name: str,
    network: type | str,
    *,
    title: str | None = None,
    settings: type | None = None,
    removes: Removal | None = None,
    search: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Add a model: it can then be trained, judged, searched for, timed and compared by name.

    Registering the same class again under its name changes nothing, so that a script may be
    imported twice.

    Args:
        name: What commands and files call it.
        network: A :class:`cores.models.network.GraphModel`, made as ``network(dims, config,
            conv)``, with its own settings as a fourth argument where it has some; or
            ``"module:Class"``, which is imported when a model is built.
        title: What tables call it; the name, if not given.
        settings: A frozen dataclass with defaults: its own settings, under its name in files and
            options.
        removes: What it removes; it is then judged on what is left. None if it sees full graphs.
        search: Values for ``cores search``, by setting; no values for one that it does not read.
    """
    if settings is not None and not is_dataclass(settings):
        raise UserError(f"`settings` of the model {name!r} must be a dataclass, got {settings!r}")
    if settings is not None:
        try:
            hash(settings())
        except TypeError as error:
            raise UserError(
                f"`settings` of the model {name!r} must be frozen and have defaults ({error})"
            ) from None
        if from_dict(settings, to_dict(settings())) != settings():
            raise UserError(
                f"`settings` of the model {name!r} do not survive JSON; use numbers, text, "
                "truth values, and tuple[...] of them"
            )
    row = ModelSpec(
        name,
        title or name,
        network,
        group=name if settings is not None else "",
        settings=settings,
        removes=removes,
        search=search or {},
    )
    if (
        settings is not None
        and name not in MODELS
        and name in {*RunConfig.__dataclass_fields__, *own_groups()}
    ):
        raise UserError(f"{name!r} is the name of settings; choose another name for the model")
    _register(MODELS, row, "model")
    for last in LAST:
        MODELS[last] = MODELS.pop(last)


def register_conv(
    name: str,
    layer: type,
    *,
    title: str | None = None,
    search: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Add a message-passing layer, for every model that uses one.

    Args:
        name: What commands and files call it.
        layer: A module made as ``layer(config, edge_dim)``, from a
            :class:`cores.config.NetworkConfig` and the number of edge features it may use, and
            called as ``layer(h, edge_index, edge_attr)``.
        title: What tables call it; the name in capitals, if not given.
        search: Values for ``cores search``, by setting.
    """
    if name == NO_MESSAGES:
        raise UserError(f"{name!r} stands for a network without messages; choose another name")
    _register(CONVS, ConvSpec(name, title or name.upper(), layer, search=search or {}), "conv")


def register_preset(
    name: str,
    settings: Callable[[str, str, str], Settings],
    *,
    summary: str = "",
    group: str = "",
    own: type | None = None,
    train: Callable[..., Any] | str | None = None,
    measure: Callable[..., Any] | str | None = None,
    fixed: Settings | None = None,
    samples: bool = False,
) -> None:
    """Add a preset: ``cores train --preset NAME`` then begins with its settings.

    Args:
        name: What commands and files call it.
        settings: Called with the names of a model, a dataset and a conv; returns nested settings as
            in a file, or raises :class:`cores.UserError` where it has none.
        summary: What the help says of it.
        group: The name of its own settings in files and options; ``name``, if not given.
        own: A frozen dataclass with defaults: its own settings, for models with a policy.
        train: Trains models with a policy: called with the model, the settings, the divided graphs,
            the random state, a folder or None, a function to report epochs to, and the key of the
            run; returns a :class:`cores.training.journal.Journal` and what stopped it early. Or
            ``"module:function"``. None: as the tool does.
        measure: Measures a trained model: called with it, graphs, a judge or None, and the graphs'
            names; returns metrics. Or ``"module:function"``. None: as the tool does.
        fixed: Settings that its training does not read, nested, at the values that say so: other
            values are refused, and files leave these settings out.
        samples: Whether models predict from one sample of the policy per graph.
    """
    known = PRESETS.get(name)
    if known is not None and known.settings.__qualname__ != settings.__qualname__:
        raise UserError(f"there is a preset {name!r} already; choose another name")
    PRESETS[name] = PresetSpec(
        name, summary, settings, group or name, own, train, measure, fixed or {}, samples
    )


COMMANDS: list[Any] = []
"""Commands that were registered: a :class:`cores.cli.command.Command`, or where one is."""


def register_command(command: Any) -> None:
    """Add a command to ``cores``.

    Args:
        command: A :class:`cores.cli.command.Command`; or ``"module:NAME"``, which is imported when
            the command line is used.
    """
    if command not in COMMANDS:
        COMMANDS.append(command)


def _register(table: dict[str, Any], row: ModelSpec | ConvSpec, kind: str) -> None:
    known = table.get(row.name)
    if known is not None and _place(known) != _place(row):
        raise UserError(f"there is a {kind} {row.name!r} already; choose another name")
    if not row.name.replace("-", "").replace("_", "").isalnum():
        raise UserError(f"a {kind}'s name has letters, digits, - and _, got {row.name!r}")
    table[row.name] = row


def _place(row: ModelSpec | ConvSpec) -> str:
    """Place where a row's class is defined: a script imported again defines it again."""
    kind = row.network if isinstance(row, ModelSpec) else row.layer
    if isinstance(kind, str):
        return kind
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return f"{file or kind.__module__}:{kind.__qualname__}"
