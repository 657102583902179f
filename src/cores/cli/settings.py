"""The settings of a run as options and files: an option for every field of the dataclasses."""

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml  # type: ignore[import-untyped]  # a dependency of jsonargparse
from docstring_parser import parse_from_object
from jsonargparse import ActionYesNo, Namespace

from cores.cli import display
from cores.cli.command import CommandParser, HelpAll
from cores.config import RunConfig, merged
from cores.config.models import CONVS, MODELS
from cores.config.names import INTRODUCED_AS, current_name, with_current_names
from cores.config.presets import preset_config
from cores.config.run import own_groups
from cores.data.catalogue import canonical_name
from cores.errors import UserError, told
from cores.files import read_text

CHOICE = ("dataset", "model", "conv", "preset")
"""Settings that decide which preset the others change."""
SHORT = {
    "epochs": "training.epochs",
    "desired_ratio": "reward.desired_ratio",
    "lam": "reward.lam",
    "max_loss": "reward.max_loss",
    "tolerance": "reward.tolerance",
    "connected": "reward.max_pieces",
    "score": "sets.score",
    "per_class": "sets.per_class",
    "split_type": "parts.kind",
}
"""Settings of groups with a short option of their own."""
IMPLIED = {"max_loss": {"reward": {"promised": True}}}
"""What giving a short option decides beside its own setting, unless other options say so."""
NOT_GIVEN = {
    "lam": "all",
    "max_loss": "{}, not promised",
    "epochs": "330 for cores-*, else {}",
}
"""What holds where a short option is not given, if that is not just its default."""
OPTIONAL = {"connected": 1}
"""Short options that need no value, and the one that they stand for then."""
FLAGS = {
    "class_weights": ("training.balance", "always", "Let rare classes count as much as others")
}
"""Flags that give a setting one value: the setting, the value, and the help."""
BRIEF = {
    "dataset": "Name (`cores datasets`), or a csv, tsv, parquet, sdf, jsonl, npz, pt or TU file",
    "preset": "Our settings, or published ones",
    "task": "One class, a number, or labels",
    "split": "Number of the split, from 1",
    "seed": "Random seed",
    "alpha": "Error rate of the prediction sets",
    "epochs": "Most epochs",
    "desired_ratio": "d: kept ratio of high sparsity reward",
    "lam": "Lambda: accuracy against sparsity",
    "max_loss": "Loss promised of a dial",
    "tolerance": "Regression: error that does no harm",
    "connected": "Keep C connected pieces",
    "score": "Conformal score of the prediction sets",
    "per_class": "One quantile per class",
    "split_type": "scaffold: none is in two parts",
}
"""What ``--help`` says of the settings it shows; ``--help-all`` has the dataclasses' own texts."""
FORMATS = {".toml": "TOML", ".json": "JSON", ".yaml": "YAML", ".yml": "YAML"}
"""Of files with settings, by suffix; others are read as TOML."""
LONGEST = 2**18
"""Characters of a file with settings; YAML is read slowly."""
MOST_VALUES = 10_000
"""Of a file with settings."""


def add_settings(parser: CommandParser) -> None:
    """Options for every setting of a run; ``--help`` shows those most used."""
    groups = settings_groups()
    parser.groups_from_files += groups
    shown = parser.add_argument_group("settings")
    by_policy = sorted(MODELS, key=lambda name: not MODELS[name].has_policy)
    registered = {
        "model": f"What to train: {', '.join(by_policy)}",
        "conv": f"Message-passing layer: {', '.join(CONVS)}",
    }
    for name, option in _options(RunConfig).items():
        if name in registered:
            parser.add_setting(
                shown, f"--{name}", registered[name], **option | {"text": registered[name]}
            )
        elif name not in (*groups, "model_config"):
            parser.add_setting(shown, f"--{name}", BRIEF.get(name), **option)
    for name, path in SHORT.items():
        group, _, setting = path.partition(".")
        option = _options(groups[group])[setting]
        if name in NOT_GIVEN:
            option["shown_default"] = NOT_GIVEN[name].format(option["shown_default"])
        if name in OPTIONAL:
            option |= {"nargs": "?", "const": OPTIONAL[name], "metavar": "C"}
            option["shown_default"] = f"any; alone: {OPTIONAL[name]}"
        if option["type"] is bool:
            option |= {"action": ActionYesNo(no_prefix="no-"), "type": None, "metavar": None}
        parser.add_setting(shown, "--" + name.replace("_", "-"), BRIEF[name], **option)
    for name, (_, _, text) in FLAGS.items():
        flag = "--" + name.replace("_", "-")
        shown.add_argument(flag, action="store_true", help=f"{text}.")
    shown.add_argument(
        "--settings",
        type=str,
        default=None,
        metavar="FILE",
        help="Settings from a TOML, YAML or JSON file; --GROUP FILE reads one group alone.",
    )
    shown.add_argument("--help-all", action=HelpAll, help="List every setting, and exit.")
    shortened = {path: name for name, path in SHORT.items() if name in NOT_GIVEN}
    for group, kind in groups.items():
        hidden = parser.add_argument_group(_title(group, kind))
        for setting, option in _options(kind).items():
            if short := shortened.get(f"{group}.{setting}"):
                option["shown_default"] = NOT_GIVEN[short].format(option["shown_default"])
            parser.add_setting(hidden, f"--{group}.{setting}", None, **option)
            if old := INTRODUCED_AS.get(f"{group}.{setting}"):
                parser.add_setting(hidden, f"--{old}", None, **option | {"text": None})


def settings_groups() -> dict[str, Any]:
    """Every group of settings and its dataclass; those of single models come last."""
    hints = get_type_hints(RunConfig)
    found = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    return found | own_groups()


def _title(group: str, kind: Any) -> str:
    """A group and what it is for; a dataclass without a docstring has its signature for one."""
    summary = (parse_from_object(kind).short_description or "").rstrip(".")
    return group if summary.startswith(f"{kind.__name__}(") else f"{group}: {summary}"


def _options(kind: Any) -> dict[str, dict[str, Any]]:
    """How a parser takes the fields of a dataclass; what is not given is left out."""
    hints = get_type_hints(kind)
    texts = {each.arg_name: each.description or "" for each in parse_from_object(kind).params}
    return {
        field.name: {
            "type": hints[field.name],
            "metavar": _metavar(hints[field.name]),
            "text": " ".join(texts.get(field.name, "").split()).removesuffix("."),
            "shown_default": _shown(field.default),
        }
        for field in dataclasses.fields(kind)
    }


def _metavar(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"{{{','.join(get_args(hint))}}}"
    if get_origin(hint) is tuple:
        return "[ITEM,...]"
    return {int: "N", float: "X", bool: "{true,false}"}.get(hint, "NAME")


def _shown(default: Any) -> str:
    """A default as an option takes it.

    >>> _shown(("mean", "add")), _shown(True), _shown(0.001)
    ('[mean,add]', 'true', '0.001')
    """
    if isinstance(default, tuple):
        return f"[{','.join(map(str, default))}]"
    return str(default).lower() if isinstance(default, bool) else str(default)


def run_config(options: Namespace, defaults: Mapping[str, Any] | None = None) -> RunConfig:
    """The preset, changed by the settings file, by files of groups, and by options, in turn.

    ``defaults`` take the place of the default preset's own.
    """
    from_files: dict[str, Any] = {}
    if options.settings is not None:
        from_files = settings_file(Path(options.settings))
    for group, path in options.group_files.items():
        from_files = merged(from_files, settings_file(Path(path), group))
    given = _given(options)
    _note_old_names(given, prefix="--")
    changes = merged(from_files, with_current_names(given))
    choice = _choice(changes)
    if defaults is not None and choice.preset == "default":
        changes = merged(defaults, changes)
    changes["dataset"] = canonical_name(choice.dataset)
    chosen = changes["dataset"], choice.model, choice.conv, choice.preset
    _choice(from_files)  # what is wrong in a file is told even where an option overrides it
    preset_config(
        *chosen, {name: value for name, value in from_files.items() if name not in CHOICE}
    )
    return preset_config(*chosen, changes)


def _given(options: Namespace) -> dict[str, Any]:
    """The settings among the options, nested like a settings file."""
    found = options.as_dict()
    olds = {old.partition(".")[0] for old in INTRODUCED_AS.values()}
    groups = {name.replace("-", "_"): name for name in (*settings_groups(), *olds)}
    names = {field.name: field.name for field in dataclasses.fields(RunConfig)} | groups
    settings = {name: found[dest] for dest, name in names.items() if dest in found}
    for name, path in SHORT.items():
        if name in found:
            if name in OPTIONAL and found[name] < 1:
                raise UserError(f"`{name}` must be at least 1, got {found[name]}")
            group, _, setting = path.partition(".")
            settings = merged(settings, {group: {setting: found[name]}})
            if name in IMPLIED:
                settings = merged(IMPLIED[name], settings)
    for name, (path, value, _) in FLAGS.items():
        if found.get(name):
            group, _, setting = path.partition(".")
            settings = merged(settings, {group: {setting: value}})
    return settings


def _choice(settings: Mapping[str, Any]) -> RunConfig:
    """What decides which preset the other settings change."""
    return RunConfig.from_settings({name: settings[name] for name in CHOICE if name in settings})


def settings_file(path: Path, group: str | None = None) -> dict[str, Any]:
    """The nested settings in the file of ``--settings``, or of ``--GROUP``, by today's names."""
    option = f"--{group or 'settings'} {path}"
    kind = FORMATS.get(path.suffix.lower(), "TOML")
    try:
        text = read_text(path)
        if len(text) > LONGEST:
            raise UserError(f"{path} has {len(text)} characters; settings have {LONGEST} at most")
        if kind == "TOML":
            settings: Any = tomllib.loads(text)
        else:
            settings = json.loads(text) if kind == "JSON" else yaml.safe_load(text)
    except UserError as error:
        raise UserError(f"--{group or 'settings'}: {error}") from None
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise UserError(f"{option} is not valid {kind}: {told(error)}") from None
    if not isinstance(settings, dict) or not all(isinstance(name, str) for name in settings):
        raise UserError(f"{option} must hold settings by name, got a {type(settings).__name__}")
    if not _is_small(settings):
        raise UserError(f"{option} holds more than {MOST_VALUES} values")
    nested = settings if group is None else {group: settings}
    _note_old_names(nested, place=f" in {path}")
    return with_current_names(nested)


def _is_small(settings: Any) -> bool:
    """Whether settings can be walked through: names in YAML make few lines into any number."""
    waiting = [settings]
    for _ in range(MOST_VALUES):
        if not waiting:
            return True
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False


def _note_old_names(settings: Mapping[str, Any], prefix: str = "", place: str = "") -> None:
    """Tell, on standard error, which settings have another name today."""
    for group, values in settings.items():
        for name in values if isinstance(values, Mapping) else ():
            old = f"{group}.{name}"
            if current_name(old) != old:
                display.print_note(f"{prefix}{old}{place} is now {prefix}{current_name(old)}")
