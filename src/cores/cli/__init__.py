"""The command line: parse, call, print; exit status 2 and one line for what the user can mend."""

import io
import json
import os
import sys
from collections.abc import Sequence

from cores.errors import ProgramError, UserError

RESUME = {
    "train": "the same command with --resume goes on",
    "reproduce": "the same command goes on",
    "search": "the same command goes on",
}
"""What to do after Ctrl-C, by command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the command ``cores``."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no ± shows a ? there
    try:
        from cores.cli import commands  # slow to import: Ctrl-C may come meanwhile
        from cores.cli.parser import parse

        name, options = parse(arguments)
        result = getattr(commands, name)(options)
        if options.json:
            print(json.dumps(result), flush=True)
    except (ProgramError, UserError) as error:
        print(f"cores: {' '.join(str(error).split())}", file=sys.stderr)
        return 1 if isinstance(error, ProgramError) else 2
    except KeyboardInterrupt:
        remedy = RESUME.get(next(iter(arguments), ""), "nothing is lost")
        print(f"cores: interrupted; {remedy}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output, `head` say, has seen enough; nothing may be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        # What the system refuses, a name too long or a folder without rights, is the user's.
        place = f": {error.filename}" if error.filename else ""
        print(f"cores: {error.strerror or error}{place}", file=sys.stderr)
        return 2
    except MemoryError:
        print("cores: out of memory; a smaller dataset or batch size needs less", file=sys.stderr)
        return 2
    return 0
