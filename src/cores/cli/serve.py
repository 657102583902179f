"""`cores serve`: a page on this machine on which a trained model can be asked."""

import json
from argparse import Namespace
from functools import partial

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.inputs import add_predict_options, add_run, predict_options


def _parser() -> CommandParser:
    parser = CommandParser(
        "Show a page on which a trained model can be asked: paste, draw or upload graphs, see what "
        "is kept and predicted, change the error rate of the sets, download the records. Only this "
        "machine can reach it. Ctrl-C ends it.",
    )
    add_run(parser)
    parser.add_argument(
        "--port",
        type=int,
        default=8765,
        metavar="N",
        help="Port of 127.0.0.1; 0 for any that is free (default: 8765).",
    )
    parser.add_argument("--open", action="store_true", help="Open the page in a browser.")
    add_predict_options(parser)
    return parser


def _serve(options: Namespace) -> None:
    from cores.serve.server import serve_run

    def started(url: str) -> None:
        if options.json:
            print(json.dumps({"url": url, "run": str(options.run)}), flush=True)
        else:
            display.print_lines([f"{options.run}: {url} (Ctrl-C ends it)"])

    serve_run(
        options.run,
        predict_options(options),
        port=options.port,
        device=options.device,
        data_root=options.data_root,
        open_browser=options.open,
        started=started,
        tell=partial(display.with_flags, flags=options.flags),
    )


SERVE = Command(
    "serve", "ask a model on a page of this machine", _parser, _serve, takes_scripts=True
)
