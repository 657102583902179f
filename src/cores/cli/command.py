"""Commands, their options, and messages that name these."""

import re
from argparse import (
    SUPPRESS,
    Action,
    ArgumentParser,
    ArgumentTypeError,
    HelpFormatter,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any, NoReturn

from cores.errors import UserError, nearest
from cores.runs.scripts import import_scripts

_ARGUMENT = re.compile(r'`([\w.]+)`|`?\b([\w.]+)=(True|"([^"\s]*)")`?')
_OF_TRAIN = " of `cores train`"


class CommandParser(ArgumentParser):
    """The options of a command; every command has ``--json`` and ``--device``."""

    def __init__(
        self, description: str, usage: str | None = None, *, add_help: bool = True
    ) -> None:
        super().__init__(
            usage=usage,
            description=description,
            formatter_class=_Formatter,
            add_help=False,
            allow_abbrev=False,
        )
        self._full_texts: list[tuple[Action, str]] = []
        """What ``--help-all`` says of options that ``--help`` shortens or leaves out."""
        if add_help:
            self.add_argument("-h", "--help", action="help", help="Show this help, and exit.")
        self.add_argument(
            "--json", action="store_true", help="Print one JSON object and nothing else."
        )
        self.add_argument(
            "--device",
            choices=("auto", "cpu", "cuda"),
            default="auto",
            help="Where to compute (default: auto, a GPU if any).",
        )

    def add_path(self, name: str, metavar: str, text: str, **kwargs: Any) -> None:
        """Add the path of a file or folder."""
        self.add_argument(name, type=named_path, metavar=metavar, help=text, **kwargs)

    def add_count(self, name: str, text: str, default: int | None = None) -> None:
        """Add a whole number."""
        self.add_argument(name, type=int, default=default, metavar="N", help=text)

    def in_full(self, action: Action, text: str | None = None) -> None:
        """Let ``--help-all`` say more of an option; without a text, let only it show the option."""
        self._full_texts.append((action, text or action.help or ""))
        if text is None:
            action.help = SUPPRESS

    def show_all(self) -> None:
        """Let the help show every option with its full text."""
        for action, text in self._full_texts:
            action.help = text

    @property
    def flags(self) -> dict[str, str]:
        """The options by the names of their values, ``desired_ratio`` for ``--desired-ratio``."""
        return {
            action.dest: action.option_strings[0]
            for action in self._actions
            if action.option_strings
        }

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the command line, with the nearest option or the help."""
        unknown = re.match(r"unrecognized arguments: (--[\w.-]+)", message)
        hint = nearest(unknown[1], self.flags.values()) if unknown else ""
        remedy = hint if hint.startswith("did you mean") else f"see {self.prog} --help"
        raise UserError(f"{' '.join(message.removeprefix('argument ').split())}; {remedy}")


class HelpAll(Action):
    """Prints the help with every option, and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=SUPPRESS, **kwargs)

    def __call__(self, parser: Any, *_: Any) -> None:
        """Called by the parser."""
        parser.show_all()
        parser.print_help()
        parser.exit()


class _Formatter(HelpFormatter):
    """Help texts as they are written; no word is broken at its hyphen."""

    def _expand_help(self, action: Action) -> str:
        return action.help or ""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


@dataclass(frozen=True)
class Command:
    """A command of the program."""

    name: str
    summary: str
    """Its line in ``cores --help``."""
    parser: Callable[[], CommandParser]
    """Builds the parser of its options."""
    run: Callable[[Namespace], dict[str, Any] | None]
    """Does it; returns what ``--json`` prints, or None if it has printed that before its end."""
    after_interrupt: str = "nothing is lost"
    """What to do after Ctrl-C."""
    takes_scripts: bool = True
    """Whether it has ``--import``: scripts are imported before the options are known."""
    takes_ranks: bool = False
    """Whether torchrun may start it in several processes."""


def parse(arguments: Sequence[str], commands: Sequence[Command]) -> tuple[Command, Namespace]:
    """Find the command that was asked for, and parse its options.

    Beside the options' values there are ``flags``, the options by the names of their values.
    """
    by_name = {command.name: command for command in commands}
    name, *rest = arguments or ("",)
    if name not in by_name:
        _explain(arguments, by_name)
    command = by_name[name]
    if command.takes_scripts:  # the parser must know what they register
        early = CommandParser("", add_help=False)
        early.prog = f"cores {name}"
        _add_import(early)
        import_scripts(early.parse_known_args(rest)[0].scripts)
    parser = command.parser()
    parser.prog = f"cores {name}"
    if command.takes_scripts:
        _add_import(parser)
    options = parser.parse_args(rest)
    options.flags = parser.flags
    return command, options


def _add_import(parser: CommandParser) -> None:
    parser.add_argument(
        "--import",
        dest="scripts",
        action="append",
        default=[],
        metavar="FILE.py",
        help="Import a script or module that registers models, convs or datasets; repeatable.",
    )


def named_path(text: str) -> Path:
    """Read the path of a file or folder; an empty one would stand for the working directory."""
    if not text.strip():
        raise ArgumentTypeError("it is empty; name a path, or leave the option out")
    return Path(text)


def _explain(arguments: Sequence[str], commands: Mapping[str, Command]) -> None:
    """Print the help or the version and exit; refuse anything else."""
    from cores import __version__

    width = max(map(len, commands))
    parser = ArgumentParser(
        prog="cores",
        usage="cores COMMAND [options]",
        description="Graph classification from a small subgraph that the model chose itself.\n"
        "Try: cores train --dataset motifs",
        epilog="commands:\n"
        + "\n".join(f"  {each.name:{width}}  {each.summary}" for each in commands.values())
        + "\n\ncores COMMAND --help lists a command's options.",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cores {__version__}")
    if not arguments:
        raise UserError("which command? cores --help lists them")
    parser.parse_known_args(arguments[:1])
    raise UserError(f"unknown command {arguments[0]!r}; {nearest(arguments[0], commands)}")


def with_flags(
    message: str, flags: Mapping[str, str], of_train: Mapping[str, str] | None = None
) -> str:
    """Put the command's options in place of a function's arguments in a message.

    Names that are no option of the command are those of ``cores train``, where they are given,
    and else stay as they are.

    >>> flags = {"out": "--out", "resume": "--resume", "data_root": "--data-root"}
    >>> with_flags("go on with resume=True or choose another `out`", flags)
    'go on with --resume or choose another --out'
    >>> with_flags("set `data_root` to the right folder", flags)
    'set --data-root to the right folder'
    >>> with_flags('torch sees no CUDA device; use device="cpu"', {"device": "--device"})
    'torch sees no CUDA device; use --device cpu'
    >>> with_flags("`y` has 3 labels; `cores datasets` helps; sample=True", flags)
    '`y` has 3 labels; `cores datasets` helps; sample=True'
    >>> with_flags("raise `lam` or `mix`", {}, {"lam": "--lam", "mix": "--mix"})
    'raise --lam or --mix of `cores train`'
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[1] or found[2], "" if found[4] is None else f" {found[4]}"
        if name in flags:
            return flags[name] + value
        return trains[name] + value + _OF_TRAIN if name in trains else found[0]

    trains = of_train or {}
    text = _ARGUMENT.sub(option, message)
    return text.replace(_OF_TRAIN, "", text.count(_OF_TRAIN) - 1)  # said once, after the last
