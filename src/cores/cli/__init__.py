"""The command line: parse, call, print; exit status 2 and one line for what the user can mend."""

import io
import json
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from cores import ranks
from cores.errors import ProgramError, UserError, out_of_memory
from cores.files.escape import brief

if TYPE_CHECKING:
    from cores.cli.command import Command


def main(arguments: Sequence[str], commands: Sequence["Command"]) -> int:
    """Run one of the commands; returns the exit status."""
    from cores.cli.command import parse
    from cores.cli.display import with_flags
    from cores.cli.interrupts import ignore_interrupts

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no ± shows a ? there
    flags: dict[str, str] = {}
    after_interrupt = "nothing is lost"
    try:
        with _first_alone_prints():
            command, options = parse(arguments, commands)
            flags, after_interrupt = options.flags, command.after_interrupt
            _check_ranks(command)
            result = command.run(options)
            if options.json and result is not None:
                print(json.dumps(result), flush=True)
    except (ProgramError, UserError) as error:
        _tell(with_flags(str(error), flags))
        return 1 if isinstance(error, ProgramError) else 2
    except KeyboardInterrupt:
        ignore_interrupts()
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
            return _failed()
        _tell(told)
        return 2
    except Exception:
        return _failed()
    return 0


def _failed() -> int:
    """A fault of the program: raise it, for its traceback; several processes show it once."""
    if ranks.launch() is None:
        raise
    with ranks.one_tells() as mine:
        if mine:
            traceback.print_exc()
    return 1


def _check_ranks(command: "Command") -> None:
    if ranks.launch() is not None and not command.takes_ranks:
        raise UserError(f"torchrun is for `cores train`; start `cores {command.name}` without it")


@contextmanager
def _first_alone_prints() -> Iterator[None]:
    """Silence all processes that torchrun started but the first."""
    here = ranks.launch()
    if here is None or here.rank == 0:
        yield
        return
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        yield


def _tell(message: str) -> None:
    """One line on standard error, by one of the processes that torchrun started."""
    with ranks.one_tells() as mine:
        if mine:
            print(f"cores: {brief(' '.join(message.split()))}", file=sys.stderr, flush=True)
