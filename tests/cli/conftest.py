"""Asking the program in this process, as a shell would."""

from collections.abc import Callable

import pytest

from cores.__main__ import main


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Gives the command line's status, and what it printed to standard output and error."""

    def ask(*arguments: object) -> tuple[int, str, str]:
        status = main([str(each) for each in arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return ask
