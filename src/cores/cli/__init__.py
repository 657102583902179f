"""The command line: parse, call, print; exit status 2 and one line for what the user can mend."""

import io
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cores.errors import ProgramError, UserError, out_of_memory
from cores.files.escape import brief

if TYPE_CHECKING:
    from cores.cli.command import Command


def main(arguments: Sequence[str], commands: Sequence["Command"]) -> int:
    """Do one of the commands; returns the exit status."""
    from cores.cli.parse import parse
    from cores.cli.words import with_flags

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no ± shows a ? there
    flags: dict[str, str] = {}
    after_interrupt = "nothing is lost"
    try:
        command, options = parse(arguments, commands)
        flags, after_interrupt = options.flags, command.after_interrupt
        result = command.run(options)
        if options.json and result is not None:
            print(json.dumps(result), flush=True)
    except (ProgramError, UserError) as error:
        _tell(with_flags(str(error), flags))
        return 1 if isinstance(error, ProgramError) else 2
    except KeyboardInterrupt:
        _tell(f"interrupted; {after_interrupt}")
        return 130
    except BrokenPipeError:
        # The reader of our output, `head` say, has seen enough; nothing may be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        # What the system refuses, a name too long or a folder without rights, is the user's.
        place = f": {error.filename}" if error.filename else ""
        _tell(f"{error.strerror or error}{place}")
        return 2
    except (MemoryError, RuntimeError) as error:
        told = out_of_memory(error)
        if told is None:
            raise
        _tell(told)
        return 2
    return 0


def _tell(message: str) -> None:
    """One line on standard error."""
    print(f"cores: {brief(' '.join(message.split()))}", file=sys.stderr)
