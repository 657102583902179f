"""Ctrl-C: one interrupt ends a command, and those that come while it ends change nothing."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


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


def ignore_interrupts() -> None:
    """Ignore them from now on; called while one is handled, lest another comes in between."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise, unless an interrupt is among the exceptions that are being handled."""
    handled = sys.exception()
    while handled is not None:
        if isinstance(handled, KeyboardInterrupt):
            return
        handled = handled.__context__
    raise KeyboardInterrupt
