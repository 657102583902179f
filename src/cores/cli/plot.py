"""`cores plot`: learning curves of runs."""

from argparse import Namespace
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.values import named_path
from cores.errors import UserError


def _parser() -> CommandParser:
    parser = CommandParser(
        "Draw how runs were trained: accuracy and kept share on the selection part, loss and "
        "reward, over the epochs. Runs that have not ended are drawn as far as they are."
    )
    parser.add_argument(
        "runs",
        type=named_path,
        metavar="RUN",
        nargs="+",
        help="Run folders that `cores train` made.",
    )
    parser.add_argument(
        "--out",
        type=named_path,
        metavar="FILE",
        help="Picture: .png, .svg or .pdf (default, for one run: learning_curves.png in its "
        "folder).",
    )
    parser.add_argument(
        "--tensorboard",
        type=named_path,
        metavar="FOLDER",
        help="Also write the numbers of all epochs as events that TensorBoard reads.",
    )
    return parser


def _plot(options: Namespace) -> dict[str, Any]:
    from cores.explain.learning import draw_learning_curves, write_tensorboard

    runs, out = options.runs, options.out
    if out is not None and out.exists():
        raise UserError(f"{out} exists; choose another name")
    if out is None and len(runs) == 1:
        out = runs[0] / "learning_curves.png"
    if out is None and options.tensorboard is None:
        raise UserError("several runs need a picture's name: add --out curves.png")
    written = []
    if out is not None:
        draw_learning_curves(runs, out)
        written.append(str(out))
    if options.tensorboard is not None:
        write_tensorboard(runs, options.tensorboard)
        written.append(str(options.tensorboard))
    if not options.json:
        display.print_lines([f"Learning curves: {', '.join(written)}"])
    return {"runs": len(runs), "out": written}


PLOT = Command("plot", "draw learning curves", _parser, _plot)
