"""The command ``cores``, also as ``python -m cores``."""

import sys
from collections.abc import Sequence

from cores import cli
from cores.cli.interrupts import ignore_interrupts, single_interrupt
from cores.errors import UserError


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    with single_interrupt(at_exit=arguments is None):
        try:  # importing takes a moment, in which Ctrl-C may come
            from cores.cli.commands import all_commands

            commands = all_commands()
        except KeyboardInterrupt:
            ignore_interrupts()
            print("cores: interrupted; nothing is lost", file=sys.stderr)
            return 130
        except UserError as error:  # of a plugin
            print(f"cores: {error}", file=sys.stderr)
            return 2
        return cli.main(sys.argv[1:] if arguments is None else arguments, commands)


if __name__ == "__main__":
    sys.exit(main())
