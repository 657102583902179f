"""The settings of a run as options and files: an option for every field of the dataclasses."""

import ast
import dataclasses
import inspect
import json
import textwrap
import tomllib
from argparse import SUPPRESS, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cores.cli.command import CommandParser, HelpAll, named_path
from cores.cli.options import OwnFile, own_file
from cores.config import RunConfig, merged
from cores.config.models import CONVS, MODELS, PRESETS
from cores.config.presets import preset_config
from cores.config.run import own_groups
from cores.data.catalogue import canonical_name
from cores.errors import UserError, told
from cores.files import read_text

CHOICE = ("dataset", "model", "conv", "preset")
"""Settings that decide which preset the others change."""


@dataclass(frozen=True)
class Short:
    """A setting that ``--help`` shows; one of a group has an option of its own there."""

    name: str
    path: str
    text: str
    """Text in ``--help``; ``--help-all`` has the dataclass's own."""
    default: str = "{}"
    """Default as the help shows it."""
    alone: int | None = None
    """Value of the option when it stands alone, where it needs none."""
    metavar: str | None = None
    """Word for the choices, where the text lists them."""


SHORT = {
    row.name: row
    for row in (
        Short(
            "dataset",
            "dataset",
            "Name (`cores datasets`), or a csv, tsv, parquet, sdf, jsonl, npz, pt or TU file",
        ),
        Short("model", "model", "What to train"),
        Short("conv", "conv", "Message-passing layer"),
        Short("preset", "preset", "Preset"),
        Short("task", "task", "One class, a number, or labels"),
        Short("split", "split", "Number of the split, from 1"),
        Short("seed", "seed", "Random seed"),
        Short("alpha", "alpha", "Error rate of the prediction sets"),
        Short("epochs", "training.epochs", "Most epochs", "270 for cores-*, else {}"),
        Short("desired_ratio", "reward.desired_ratio", "d: kept ratio of high sparsity reward"),
        Short("lam", "reward.lam", "Lambda: accuracy against sparsity"),
        Short("members", "committee.members", "Classifiers in the committee"),
        Short("sufficiency", "explanation.sufficiency", "tau: probability of a sufficient part"),
        Short("parts", "explanation.parts", "Part shown: minimal, cut or policy", metavar="KIND"),
        Short("class_from", "explanation.class_from", "Class from: whole or part", metavar="VIEW"),
        Short("proposer", "explanation.proposer", "Order: policy or effects", metavar="NAME"),
        Short("units", "explanation.units", "Rings whole: auto, elements or rings", metavar="KIND"),
        Short("tolerance", "reward.tolerance", "Regression: error that counts as none"),
        Short("connected", "reward.max_pieces", "Keep C connected pieces", alone=1),
        Short("score", "sets.score", "lac, aps, raps or randomised-aps", metavar="NAME"),
        Short("per_class", "sets.per_class", "One quantile per class"),
        Short("split_type", "parts.kind", "random, scaffold or column", metavar="KIND"),
    )
}


def add_settings(parser: CommandParser) -> None:
    """Add an option for every setting of a run; ``--help`` shows those most used."""
    by_policy = sorted(MODELS, key=lambda name: not MODELS[name].has_policy)
    registered = {"model": by_policy, "conv": CONVS, "preset": PRESETS}
    shown = parser.add_argument_group("settings")
    groups = settings_groups()
    fields = {group: _fields(kind) for group, kind in {"": RunConfig, **groups}.items()}
    for short in SHORT.values():
        group, _, name = short.path.rpartition(".")
        option, meaning, default = fields[group][name]
        default = short.default.format(default)
        text = short.text
        if name in registered:
            text = f"{text}: {', '.join(registered[name])}"
        if option.get("type") is _truth:
            option = {"action": BooleanOptionalAction}
        if short.metavar is not None:
            option |= {"metavar": short.metavar}
        if short.alone is not None:
            option |= {"nargs": "?", "const": short.alone, "metavar": "C"}
            default = f"any; alone: {short.alone}"
        action = shown.add_argument(
            "--" + short.name.replace("_", "-"),
            default=SUPPRESS,
            help=f"{text} (default: {default}).",
            **option,
        )
        full = text if name in registered else meaning
        parser.in_full(action, f"{full} (default: {default}).")
    shown.add_argument(
        "--class-weights", action="store_true", help="Let rare classes count as much as others."
    )
    shown.add_argument(
        "--settings", type=named_path, metavar="FILE", help="Settings from a TOML or JSON file."
    )
    shown.add_argument("--help-all", action=HelpAll, help="List every setting, and exit.")
    defaults = {short.path: short.default for short in SHORT.values()}
    for group, kind in groups.items():
        summary = (kind.__doc__ or "").partition("\n")[0].rstrip(".")
        generated = summary.startswith(f"{kind.__name__}(")  # a dataclass without a docstring
        hidden = parser.add_argument_group(group if generated else f"{group}: {summary}")
        for name, (option, meaning, default) in fields[group].items():
            path = f"{group}.{name}"
            text = f"{meaning} (default: {defaults.get(path, '{}').format(default)})."
            parser.in_full(
                hidden.add_argument(f"--{path}", dest=path, default=SUPPRESS, help=text, **option)
            )


def settings_groups() -> dict[str, Any]:
    """Every group of settings and its dataclass; those of single models come last."""
    hints = get_type_hints(RunConfig)
    found = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    return found | own_groups()


def _fields(kind: Any) -> dict[str, tuple[dict[str, Any], str, str]]:
    """Describe every field of a dataclass: for argparse, its meaning, and its default."""
    hints, texts = get_type_hints(kind), _field_texts(kind)
    return {
        each.name: (
            _option(hints[each.name]),
            texts.get(each.name, "").removesuffix("."),
            _shown(each.default),
        )
        for each in dataclasses.fields(kind)
    }


def _option(hint: Any) -> dict[str, Any]:
    """Tell argparse how to turn text into a value of a type, which ``config`` then checks."""
    if isinstance(hint, UnionType):
        (inner,) = [_option(kind) for kind in get_args(hint) if kind is not NoneType][:1]
        return inner | {"type": lambda text: None if text == "none" else inner["type"](text)}
    if get_origin(hint) is Literal:
        return {"type": type(get_args(hint)[0]), "choices": get_args(hint)}
    if get_origin(hint) is tuple:
        item = _option(get_args(hint)[0])["type"]
        return {
            "type": lambda text: [item(each.strip()) for each in text.strip("[]").split(",")],
            "metavar": "ITEM,...",
        }
    if hint is bool:
        return {"type": _truth, "metavar": "{true,false}"}
    return {"type": hint, "metavar": {int: "N", float: "X"}.get(hint, "NAME")}


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ArgumentTypeError(f"expected true or false, got {text!r}")
    return text.lower() == "true"


def _shown(default: Any) -> str:
    """Show a default as an option takes it.

    >>> _shown(("mean", "add")), _shown(True), _shown(0.001)
    ('mean,add', 'true', '0.001')
    """
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return str(default).lower() if isinstance(default, bool) else str(default)


def _field_texts(kind: type) -> dict[str, str]:
    """Read the texts below the fields of a dataclass and of those that it extends."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(each):
            continue
        with suppress(OSError):  # a class without a file, as of a notebook, has no texts
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            assert isinstance(definition, ast.ClassDef)
            for line, below in zip(definition.body, definition.body[1:], strict=False):
                match line, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        found[name] = " ".join(text.split())
    return found


def asked_run(options: Namespace) -> tuple[RunConfig, OwnFile | None]:
    """Read the settings of a run and, first, a file of the user's: the defaults suit its size."""
    config = run_config(options)
    own = own_file(config.dataset, options, config.task, config.network.reach)
    return (config if own is None else run_config(options, own.settings)), own


def run_config(options: Namespace, defaults: Mapping[str, Any] | None = None) -> RunConfig:
    """Change the preset by the settings file and by options, in turn.

    ``defaults`` take the place of the default preset's own.
    """
    from_file = {} if options.settings is None else settings_file(options.settings)
    changes = merged(from_file, _given(options))
    choice = _choice(changes)
    if defaults is not None and choice.preset == "default":
        changes = merged(defaults, changes)
    changes["dataset"] = canonical_name(choice.dataset)
    chosen = changes["dataset"], choice.model, choice.conv, choice.preset
    _choice(from_file)  # what is wrong in a file is told even where an option overrides it
    preset_config(*chosen, {name: value for name, value in from_file.items() if name not in CHOICE})
    return preset_config(*chosen, changes)


def _given(options: Namespace) -> dict[str, Any]:
    """Nest the settings among the options like a settings file; short options come last."""
    found = vars(options)
    settings: dict[str, Any] = {}
    for group, kind in settings_groups().items():
        for name in (each.name for each in dataclasses.fields(kind)):
            if f"{group}.{name}" in found:
                settings.setdefault(group, {})[name] = found[f"{group}.{name}"]
    for name, short in SHORT.items():
        if name in found:
            if short.alone is not None and found[name] < 1:
                raise UserError(f"`{name}` must be at least 1, got {found[name]}")
            group, _, setting = short.path.rpartition(".")
            value = {setting: found[name]}
            settings = merged(settings, {group: value} if group else value)
    if options.class_weights:
        settings = merged(settings, {"training": {"balance": "always"}})
    return settings


def _choice(settings: Mapping[str, Any]) -> RunConfig:
    """Read the settings that decide which preset the others change."""
    return RunConfig.from_settings({name: settings[name] for name in CHOICE if name in settings})


def settings_file(path: Path) -> dict[str, Any]:
    """Read the nested settings of a JSON file, or of a TOML file by any other suffix."""
    kind = "JSON" if path.suffix.lower() == ".json" else "TOML"
    try:
        text = read_text(path)
        settings: Any = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except UserError as error:
        raise UserError(f"--settings: {error}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"--settings {path} is not valid {kind}: {told(error)}") from None
    if not isinstance(settings, dict):
        raise UserError(
            f"--settings {path} must hold settings by name, got a {type(settings).__name__}"
        )
    return settings
