"""What a command is, and the parser that every command begins with."""

from argparse import SUPPRESS, Action
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal

from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace

from cores.cli.values import named_path

Device = Literal["auto", "cpu", "cuda"]


class CommandParser(ArgumentParser):
    """The options of a command; every command has ``--json`` and ``--device``."""

    def __init__(self, description: str, **kwargs: Any) -> None:
        super().__init__(
            exit_on_error=False,
            allow_abbrev=False,
            formatter_class=_Formatter,
            description=description,
            **kwargs,
        )
        self.groups_from_files: list[str] = []
        """Groups of settings that ``--GROUP FILE`` reads from a file."""
        self._texts: list[tuple[Action, str]] = []
        """What ``--help-all`` says of options that ``--help`` describes otherwise, or not."""
        self.add_argument(
            "--json", action="store_true", help="Print one JSON object and nothing else."
        )
        self.add_argument(
            "--device",
            type=Device,
            default="auto",
            help="Where to compute (default: auto, a GPU if any).",
        )

    def add_setting(
        self,
        group: Any,
        option: str,
        brief: str | None,
        *,
        text: str | None,
        shown_default: str,
        **kwargs: Any,
    ) -> None:
        """Add an option that is left out of the values unless it is given.

        Args:
            group: Of the help.
            option: Its name, with dashes.
            brief: What ``--help`` says of it; None leaves it out there.
            text: What ``--help-all`` says of it; None leaves it out there, too.
            shown_default: Its default, for both texts.
            kwargs: As for any option.
        """
        briefly, fully = (
            SUPPRESS if words is None else f"{words} (default: {shown_default}).".replace("%", "%%")
            for words in (brief, text)
        )
        action = group.add_argument(option, default=SUPPRESS, help=briefly, **kwargs)
        self._texts.append((action, fully))

    def hide(self, action: Action) -> None:
        """Leave an option out of ``--help``; ``--help-all`` shows it."""
        self._texts.append((action, action.help or ""))
        action.help = SUPPRESS

    def show_all(self) -> None:
        """Let the help show every setting, with its full text."""
        for action, text in self._texts:
            action.help = text

    @property
    def flags(self) -> dict[str, str]:
        """The options by the names of their values, ``desired_ratio`` for ``--desired-ratio``."""
        never_shown = [action for action, text in self._texts if text == SUPPRESS]
        return {
            action.dest: action.option_strings[0]
            for action in self._actions
            if action.option_strings and action not in never_shown
        }


class HelpAll(Action):
    """Prints the help with every option, and exits."""

    def __init__(self, option_strings: list[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=SUPPRESS, **kwargs)

    def __call__(self, parser: Any, *_: Any) -> None:
        """Called by the parser."""
        parser.show_all()
        parser.print_help()
        parser.exit()


class _Formatter(DefaultHelpFormatter):
    """Help as it is written: the texts name types and defaults where they help."""

    def _get_help_string(self, action: Action) -> str:
        if action.option_strings[:1] == ["-h"]:
            return "Show this help, and exit."
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
    """Where the datasets are."""
    parser.add_argument(
        "--data-root",
        type=named_path,
        default=None,
        metavar="FOLDER",
        help="Folder with tu/NAME.zip and other/NAME.npz, or PyG's layout (default: CORES_DATA).",
    )


def add_import(parser: CommandParser) -> None:
    """Scripts that register models, convs or datasets."""
    parser.add_argument(
        "--import",
        dest="scripts",
        action="append",
        type=str,
        default=[],
        metavar="FILE.py",
        help="Import a script or module that registers models, convs or datasets; repeatable.",
    )
