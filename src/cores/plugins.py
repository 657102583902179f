"""Packages that extend this one: found by their entry point where they are installed."""

from importlib.metadata import EntryPoint, entry_points

from cores.errors import UserError

GROUP = "cores.plugins"
"""Entry points of this group name functions that call ``cores.register_model`` and its like."""
_waiting: list[EntryPoint] = list(entry_points(group=GROUP))


def load_plugins() -> None:
    """Call what installed packages registered under :data:`GROUP`, once per process."""
    while _waiting:
        found = _waiting.pop()  # before it is called: it may look models up
        try:
            found.load()()
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise UserError(f"the plugin {found.value} cannot be loaded ({what})") from None
