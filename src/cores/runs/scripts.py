"""Scripts of the user's that register models or convs, imported here and in worker processes."""

import hashlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from cores.config import RunConfig
from cores.errors import UserError

_imported: list[str] = []
"""Scripts that this process has imported; its workers import them, too."""


def import_scripts(places: Iterable[str]) -> None:
    """Import Python files or modules, each once; they call :func:`cores.register_model`.

    What they print goes to standard error.

    Args:
        places: Paths that end in ``.py``, or names of modules that Python can find.
    """
    for place in places:
        is_file = place.endswith(".py") or os.sep in place
        where = str(Path(place).expanduser().absolute()) if is_file else place
        if where in _imported:
            continue
        if is_file and not Path(where).is_file():
            raise UserError(f"cannot import {place}: there is no such file")
        try:
            with redirect_stdout(sys.stderr):
                _import_file(Path(where)) if is_file else importlib.import_module(where)
        except (Exception, SystemExit) as error:
            raise UserError(f"cannot import {place}: {_reason(error, where)}") from None
        _imported.append(where)


def _import_file(path: Path) -> None:
    # A name by its path, the same in every process: it must not hide a module called alike.
    name = f"{path.stem}_{hashlib.sha1(str(path).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is not a Python file")
    sys.modules[name] = module_from_spec(spec)  # where dataclasses look their module up
    try:
        spec.loader.exec_module(sys.modules[name])
    except BaseException:
        del sys.modules[name]
        raise


def _reason(error: BaseException, path: str) -> str:
    """An exception, and the line of the script that it came from."""
    if isinstance(error, ModuleNotFoundError) and f"{path}.".startswith(f"{error.name}."):
        return "there is no such module; give the path of a .py file, or set PYTHONPATH"
    what = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path
    ]
    return f"line {lines[-1]}: {what}" if lines else what


def in_worker(job: Callable[[Any], str | None], item: Any) -> tuple[Any, ...]:
    """The function and the arguments that do a job in another process, which knows the scripts.

    A configuration travels as plain data: the class of its model's settings may be a script's.
    """
    plain = item.settings if isinstance(item, RunConfig) else item
    return _do, tuple(_imported), job, plain


def _do(places: tuple[str, ...], job: Callable[[Any], str | None], plain: Any) -> str | None:
    try:
        import_scripts(places)
        item = RunConfig.from_settings(plain) if isinstance(plain, dict) else plain
    except UserError as error:
        return str(error)
    return job(item)
