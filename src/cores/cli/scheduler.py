"""The option for a dask scheduler, and those for its certificates."""

from argparse import Namespace
from typing import TYPE_CHECKING

from cores.cli.command import CommandParser
from cores.cli.values import named_path
from cores.errors import UserError

if TYPE_CHECKING:
    from cores.runs.cluster import Certificates

FILES = {
    "tls_ca": "The authority of the certificates of a scheduler at tls://, in PEM format "
    "(default: as in dask's configuration).",
    "tls_cert": "Our own certificate for that scheduler.",
    "tls_key": "The key of our certificate.",
}


def add_scheduler(parser: CommandParser, text: str) -> None:
    """Add the address of a scheduler, and the files by which it knows us."""
    parser.add_argument("--scheduler", metavar="ADDRESS", help=text)
    for name, help_text in FILES.items():
        parser.add_argument(_flag(name), type=named_path, metavar="FILE.pem", help=help_text)


def certificates(options: Namespace) -> "Certificates | None":
    """The certificates that the options name."""
    from cores.runs.cluster import Certificates

    given = {name: path for name in FILES if (path := getattr(options, name)) is not None}
    if not given:
        return None
    if options.scheduler is None:
        raise UserError("certificates are for a --scheduler; name its address")
    if missing := [name for name in FILES if name not in given]:
        needed = ", ".join(map(_flag, FILES))
        raise UserError(f"certificates need {needed}; there is no {_flag(missing[0])}")
    return Certificates(**given)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
