"""The command line: parse, call, print; exit status 2 and one line for what the user can mend."""

import json
import os
import sys
from collections.abc import Sequence

from cores.errors import UserError

RESUME = {
    "train": "the same command with --resume goes on",
    "reproduce": "the same command goes on",
    "search": "the same command goes on",
}
"""What to do after Ctrl-C, by command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the command ``cores``."""
    from cores.cli import commands
    from cores.cli.parser import parse

    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        name, options = parse(arguments)
        result = getattr(commands, name)(options)
        if options.json:
            print(json.dumps(result), flush=True)
    except UserError as error:
        print(f"cores: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"cores: interrupted; {RESUME.get(arguments[0], 'nothing is lost')}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output, `head` say, has seen enough; nothing may be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        # What the system refuses, a name too long or a folder without rights, is the user's.
        print(f"cores: {error.strerror or error}: {error.filename}", file=sys.stderr)
        return 2
    return 0
