"""Text files, packed or not, line by line."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cores.errors import UserError
from cores.files.limits import check_regular, limited_lines


@contextmanager
def text_lines(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a text file, unpacked if its name ends in .gz, none of them too long.

    What is wrong with the file is told in one line.
    """
    check_regular(path)
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
                yield limited_lines(file.readline, path)
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield limited_lines(file.readline, path)
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is not a whole gzip file ({error})") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
