"""Commands on a saved model: `cores evaluate`, `plot`, `export` and `serve`."""

import json
from argparse import Namespace
from dataclasses import asdict
from functools import partial
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser, with_flags
from cores.cli.options import add_predict_options, add_run, column_names, predict_options
from cores.cli.train import TRAIN
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError


def _evaluate_parser() -> CommandParser:
    parser = CommandParser("Measure a saved model on its own test split, or on another dataset.")
    add_run(parser)
    parser.add_argument(
        "--dataset",
        metavar="NAME",
        help="Another dataset by name or path, with the same labels; all its graphs are used, of "
        "the run's own data the test part.",
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="Sample the subgraphs from the policy, seeded, instead of taking its mode.",
    )
    parser.add_argument(
        "--explanations",
        action="store_true",
        help="Also measure how faithful the kept parts are: sufficiency, comprehensiveness, "
        "fidelity, idempotence, stability.",
    )
    parser.add_path(
        "--other",
        "RUN",
        "Also measure the overlap with what these runs keep of the same graphs: the same "
        "settings and split, other seeds.",
        nargs="+",
        default=[],
    )
    add_predict_options(parser)
    return parser


def _evaluate(options: Namespace) -> dict[str, Any]:
    from cores.runs.run import evaluate_run

    if options.dataset is None and column_names(options) != ColumnNames():
        raise UserError("the run knows its own columns; naming others needs a `dataset`")
    metrics = evaluate_run(
        options.run,
        predict_options(options),
        dataset=options.dataset,
        data_root=options.data_root,
        device=options.device,
        sample=options.sample,
        explanations=options.explanations,
        others=options.other,
    )
    if errors := metrics.get("errors"):
        first = "; ".join(metrics["first_errors"])
        display.print_note(f"{errors:,} rows could not be used: {first}")
    if not options.json:
        display.print_metrics(metrics, str(options.run), options.flags, TRAIN.parser().flags)
    return metrics


def _plot_parser() -> CommandParser:
    parser = CommandParser(
        "Draw how runs were trained: accuracy and kept share on the selection part, loss and "
        "reward, over the epochs. Runs that have not ended are drawn as far as they are."
    )
    parser.add_path("runs", "RUN", "Run folders that `cores train` made.", nargs="+")
    parser.add_path(
        "--out",
        "FILE",
        "Picture: .png, .svg or .pdf (default, for one run: learning_curves.png in its folder).",
    )
    parser.add_path(
        "--tensorboard",
        "FOLDER",
        "Also write the numbers of all epochs as events that TensorBoard reads.",
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
    if out is not None:
        draw_learning_curves(runs, out)
    if options.tensorboard is not None:
        write_tensorboard(runs, options.tensorboard)
    written = [str(path) for path in (out, options.tensorboard) if path is not None]
    if not options.json:
        display.print_lines([f"Learning curves: {', '.join(written)}"])
    return {"runs": len(runs), "out": written}


def _export_parser() -> CommandParser:
    parser = CommandParser(
        "Write a trained model as ONNX files: its committee, and the policy that proposes parts. "
        "They are compared with the model on random graphs before they are written."
    )
    add_run(parser)
    parser.add_argument(
        "--format", choices=("onnx",), default="onnx", help="Kind of file (default: onnx)."
    )
    parser.add_path("--out", "FOLDER", "Folder for the files (default: the run folder).")
    return parser


def _export(options: Namespace) -> dict[str, Any]:
    from cores.runs.export import export_run

    exported = export_run(options.run, options.out)
    if not options.json:
        for file in exported:
            display.print_lines(
                [
                    f"file: {file.file} ({file.bytes / 1024:.0f} KiB)",
                    f"inputs: {', '.join(file.inputs)}",
                    f"outputs: {', '.join(file.outputs)}",
                    f"largest difference from the model: {file.max_difference:.1g}",
                ]
            )
    return {"files": [asdict(file) for file in exported]}


def _serve_parser() -> CommandParser:
    parser = CommandParser(
        "Show a page on which a trained model can be asked: paste, draw or upload graphs, see what "
        "is kept and predicted, change the error rate of the sets, download the records. Only this "
        "machine can reach it. Ctrl-C ends it.",
    )
    add_run(parser)
    parser.add_count(
        "--port", "Port of 127.0.0.1; 0 for any that is free (default: 8765).", default=8765
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
        tell=partial(with_flags, flags=options.flags),
    )


EVALUATE = Command("evaluate", "measure a trained model", _evaluate_parser, _evaluate)
PLOT = Command("plot", "draw learning curves", _plot_parser, _plot, takes_scripts=False)
EXPORT = Command("export", "write a trained model as ONNX", _export_parser, _export)
SERVE = Command("serve", "ask a model on a page of this machine", _serve_parser, _serve)
