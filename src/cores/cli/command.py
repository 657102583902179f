"""A command and its parser, and the way from what was typed to the command and its options."""

import re
from argparse import SUPPRESS, Action, ArgumentParser, HelpFormatter, Namespace
from argparse import RawDescriptionHelpFormatter as RawFormatter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, NoReturn

from cores.cli.values import named_path
from cores.errors import UserError, nearest
from cores.runs.scripts import import_scripts


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
    takes_scripts: bool = False
    """Whether it has ``--import``: scripts are imported before the options are known."""
    takes_ranks: bool = False
    """Whether torchrun may start it in several processes."""


def add_data_root(parser: CommandParser) -> None:
    """Add the folder of the datasets."""
    parser.add_argument(
        "--data-root",
        type=named_path,
        metavar="FOLDER",
        help="Folder with tu/NAME.zip and other/NAME.npz, or PyG's layout (default: CORES_DATA).",
    )


def add_import(parser: CommandParser) -> None:
    """Add scripts that register models, convs or datasets."""
    parser.add_argument(
        "--import",
        dest="scripts",
        action="append",
        default=[],
        metavar="FILE.py",
        help="Import a script or module that registers models, convs or datasets; repeatable.",
    )


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
        add_import(early)
        import_scripts(early.parse_known_args(rest)[0].scripts)
    parser = command.parser()
    parser.prog = f"cores {name}"
    options = parser.parse_args(rest)
    options.flags = parser.flags
    return command, options


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
        formatter_class=RawFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cores {__version__}")
    if not arguments:
        raise UserError("which command? cores --help lists them")
    parser.parse_known_args(arguments[:1])
    raise UserError(f"unknown command {arguments[0]!r}; {nearest(arguments[0], commands)}")
