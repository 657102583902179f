"""Run a command: parse, call, print; one line and an exit status for what goes wrong."""

import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING

from cores import ranks
from cores.errors import ProgramError, UserError, out_of_memory
from cores.files.escape import brief

if TYPE_CHECKING:
    from cores.cli.command import Command


def main(arguments: Sequence[str], commands: Sequence["Command"] | None = None) -> int:
    """Run one of the commands, of all by default; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no ± shows a ? there
    flags: dict[str, str] = {}
    after_interrupt = "nothing is lost"
    try:  # importing takes a moment, in which Ctrl-C may come
        from cores.cli.command import parse
        from cores.cli.commands import all_commands

        with _first_alone_prints():
            command, options = parse(arguments, all_commands() if commands is None else commands)
            flags, after_interrupt = options.flags, command.after_interrupt
            if ranks.launch() is not None and not command.takes_ranks:
                raise UserError(
                    f"torchrun is for `cores train`; start `cores {command.name}` without it"
                )
            result = command.run(options)
            if options.json and result is not None:
                print(json.dumps(result), flush=True)
    except (ProgramError, UserError) as error:
        from cores.cli.command import with_flags

        _tell(with_flags(str(error), flags))
        return 1 if isinstance(error, ProgramError) else 2
    except KeyboardInterrupt:
        # Ignored from now on, lest another comes in between.
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
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
    except Exception as error:
        if (message := out_of_memory(error)) is not None:
            _tell(message)
            return 2
        if ranks.launch() is None:
            raise
        with ranks.one_tells() as mine:  # several processes show a traceback once
            if mine:
                traceback.print_exc()
        return 1
    return 0


@contextmanager
def single_interrupt(*, at_exit: bool) -> Iterator[None]:
    """Ignore interrupts while one is being handled.

    A launcher may interrupt a process and its group in the same instant. The second interrupt would
    break off what cleans up after the first: locks that are taken again, workers that are ended.

    Args:
        at_exit: Whether the process ends with this; what is ignored by then stays ignored.
    """
    # Where interrupts are ignored, as in the background of a shell, they stay so.
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        if not at_exit or signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise, unless an interrupt is among the exceptions that are being handled."""
    handled = sys.exception()
    while handled is not None:
        if isinstance(handled, KeyboardInterrupt):
            return
        handled = handled.__context__
    raise KeyboardInterrupt


def is_first() -> bool:
    """Tell whether this process is alone, or the first of those that torchrun started."""
    here = ranks.launch()
    return here is None or here.rank == 0


@contextmanager
def _first_alone_prints() -> Iterator[None]:
    """Silence all processes that torchrun started but the first."""
    if is_first():
        yield
        return
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        yield


def _tell(message: str) -> None:
    """Print a line on standard error, by one of the processes that torchrun started."""
    with ranks.one_tells() as mine:
        if mine:
            print(f"cores: {brief(' '.join(message.split()))}", file=sys.stderr, flush=True)
