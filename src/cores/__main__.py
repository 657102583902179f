"""The command ``cores``, also as ``python -m cores``."""

import sys
from collections.abc import Sequence

from cores import cli


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    with cli.single_interrupt(at_exit=arguments is None):
        return cli.main(sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(main())
