"""The option for a dask scheduler, and those for its certificates."""

from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import Namespace

from cores.cli.command import CommandParser
from cores.errors import UserError

if TYPE_CHECKING:
    from cores.runs.cluster import Certificates

FILES = {"tls_ca": "--tls-ca", "tls_cert": "--tls-cert", "tls_key": "--tls-key"}


def add_scheduler(parser: CommandParser, text: str) -> None:
    """Whose workers do the work, and how they know us."""
    parser.add_argument("--scheduler", type=str, default=None, metavar="ADDRESS", help=text)
    texts = (
        "The authority of the certificates of a scheduler at tls://, in PEM format "
        "(default: as in dask's configuration).",
        "Our own certificate for that scheduler.",
        "The key of our certificate.",
    )
    for option, help_text in zip(FILES.values(), texts, strict=True):
        parser.add_argument(option, type=str, default=None, metavar="FILE.pem", help=help_text)


def certificates(options: Namespace) -> "Certificates | None":
    """The certificates that the options name."""
    from cores.runs.cluster import Certificates

    given = {name: Path(options[name]) for name in FILES if options[name] is not None}
    if not given:
        return None
    if options.scheduler is None:
        raise UserError("certificates are for a --scheduler; name its address")
    if missing := [option for name, option in FILES.items() if name not in given]:
        raise UserError(f"certificates need {', '.join(FILES.values())}; there is no {missing[0]}")
    return Certificates(**given)
