"""Which command was asked for, and its options."""

import argparse
from collections.abc import Mapping, Sequence

from jsonargparse import ArgumentError, Namespace

from cores.cli.command import Command
from cores.cli.words import parser_message
from cores.errors import UserError, nearest, told
from cores.runs.scripts import import_scripts


def parse(arguments: Sequence[str], commands: Sequence[Command]) -> tuple[Command, Namespace]:
    """The command that was asked for, and its options.

    Beside the options' values there are ``flags``, the options by the names of their values, and
    ``group_files``, the files of settings by group.
    """
    by_name = {command.name: command for command in commands}
    name, *rest = arguments or ("",)
    if name not in by_name:
        _explain(arguments, by_name)
    command = by_name[name]
    flags: dict[str, str] = {}
    try:
        if command.takes_scripts:  # what they register, the parser must know
            import_scripts(_values(rest, ["import"])[1].get("import", []))
        parser = command.parser()
        parser.prog, flags = f"cores {name}", parser.flags
        rest, files = _values(rest, parser.groups_from_files)
        options = parser.parse_args(rest)
    except (ArgumentError, argparse.ArgumentError) as error:
        message = parser_message(told(error), flags)
        remedy = "" if message.endswith("?") else f"; see cores {name} --help"
        raise UserError(message + remedy) from None
    options.flags = flags
    options.group_files = {group: paths[-1] for group, paths in files.items()}
    return command, options


def _explain(arguments: Sequence[str], commands: Mapping[str, Command]) -> None:
    """Print the help or the version and exit; anything else is a mistake."""
    from cores import __version__

    width = max(map(len, commands))
    parser = argparse.ArgumentParser(
        prog="cores",
        usage="cores COMMAND [options]",
        description="Graph classification from a small subgraph that the model chose itself.\n"
        "Try: cores train --dataset motifs",
        epilog="commands:\n"
        + "\n".join(f"  {each.name:{width}}  {each.summary}" for each in commands.values())
        + "\n\ncores COMMAND --help lists a command's options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cores {__version__}")
    if not arguments:
        raise UserError("which command? cores --help lists them")
    parser.parse_known_args(arguments[:1])
    raise UserError(f"unknown command {arguments[0]!r}; {nearest(arguments[0], commands)}")


def _values(
    arguments: Sequence[str], names: Sequence[str]
) -> tuple[list[str], dict[str, list[str]]]:
    """The values of some options, and the other arguments.

    >>> _values(["--ppo", "a.toml", "--ppo.clip", "0.1", "--ppo=b.toml"], ["ppo"])
    (['--ppo.clip', '0.1'], {'ppo': ['a.toml', 'b.toml']})
    """
    early = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, exit_on_error=False, argument_default=argparse.SUPPRESS
    )
    for name in names:
        early.add_argument(f"--{name}", dest=name, action="append")
    found, others = early.parse_known_args(list(arguments))
    return others, vars(found)
