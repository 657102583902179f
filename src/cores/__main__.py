"""``python -m cores`` is the command ``cores``."""

import sys

from cores.cli import main

if __name__ == "__main__":
    sys.exit(main())
