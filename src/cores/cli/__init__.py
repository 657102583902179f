"""The command line: parse, call, print; exit status 2 and one line for what the user can mend."""

import json
import sys
from collections.abc import Sequence

from cores.errors import UserError


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the command ``cores``."""
    from cores.cli.parser import parse

    try:
        command, options = parse(sys.argv[1:] if arguments is None else arguments)
        result = command(options)
    except UserError as error:
        print(f"cores: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "cores: interrupted; the same command with --resume goes on",
            file=sys.stderr,
        )
        return 130
    except BrokenPipeError:
        return 0  # the reader of our output, `head` say, has seen enough
    if options.json:
        print(json.dumps(result))
    return 0
