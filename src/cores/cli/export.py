"""`cores export`: a trained model as a file for other programs."""

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser, add_import
from cores.cli.inputs import add_run
from cores.cli.values import named_path


def _parser() -> CommandParser:
    parser = CommandParser(
        "Write a trained model as one ONNX file: policy, removal and classifier. The file is "
        "compared with the model on random graphs before it is written."
    )
    add_run(parser)
    parser.add_argument(
        "--format", choices=("onnx",), default="onnx", help="Kind of file (default: onnx)."
    )
    parser.add_argument(
        "--out",
        type=named_path,
        metavar="FILE",
        help="File to write (default: model.onnx in the run folder).",
    )
    add_import(parser)
    return parser


def _export(options: Namespace) -> dict[str, Any]:
    from cores.runs.export import export_run

    exported = export_run(options.run, options.out)
    if not options.json:
        display.print_lines(
            [
                f"file: {exported.file} ({exported.bytes / 1024:.0f} KiB)",
                f"inputs: {', '.join(exported.inputs)}",
                f"outputs: {', '.join(exported.outputs)}",
                f"largest difference from the model: {exported.max_difference:.1g}",
            ]
        )
    return asdict(exported)


EXPORT = Command("export", "write a trained model as ONNX", _parser, _export, takes_scripts=True)
