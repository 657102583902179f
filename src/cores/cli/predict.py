"""`cores predict`: new graphs, predicted from the part that the model keeps."""

import sys
from argparse import Namespace
from pathlib import Path
from time import perf_counter
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.options import (
    add_predict_options,
    add_run,
    add_scheduler,
    certificates,
    check_positive,
    predict_options,
)
from cores.errors import UserError


def _parser() -> CommandParser:
    parser = CommandParser(
        "Predict graphs with a trained model: one record per graph, in the order of the input. "
        "The same command again continues after an interruption.",
    )
    add_run(parser)
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="csv, tsv, parquet, sdf, smi, jsonl, npz, pt, TU zip or folder, a folder of such "
        "files, or the name of a dataset; labels are not needed.",
    )
    parser.add_path(
        "--out",
        "FILE",
        "File that ends in .csv, .jsonl or .parquet (.gz may follow); for a folder of files, "
        "a folder (default: JSON lines on standard output).",
    )
    parser.add_count("--workers", "Processes (default: 1).", default=1)
    add_scheduler(
        parser,
        "Predict the files of a folder on the workers of this dask scheduler, e.g. "
        "tls://head:8786.",
    )
    add_predict_options(parser)
    return parser


def _predict(options: Namespace) -> dict[str, Any]:
    check_positive(options, "workers")
    scheduler = {"scheduler": options.scheduler, "certificates": certificates(options)}
    source, out = options.input, options.out
    if out is None and (options.workers > 1 or options.scheduler):
        raise UserError("--workers and --scheduler need --out")
    from cores.data.inputs.sources import count_rows, holds_rows, partitions
    from cores.runs.predict import predict_file, predict_folder

    how = predict_options(options)
    begin = perf_counter()
    if out is None:
        return _print_records(source, how, options)
    path = Path(source)
    given: dict[str, Any] = {"device": options.device, "workers": options.workers}
    if path.is_dir() and holds_rows(path):
        with display.rows_progress("files", len(partitions(path))) as advance:
            summary = predict_folder(
                options.run, path, out, how, **given, **scheduler, advance=advance
            )
    elif options.scheduler:
        raise UserError(f"--scheduler predicts the files of a folder, {source} is none")
    else:
        given["data_root"] = options.data_root
        with display.rows_progress("graphs", count_rows(path)) as advance:
            summary = predict_file(options.run, source, out, how, **given, advance=advance)
    seconds = perf_counter() - begin
    if not options.json:
        rate = summary.records / seconds
        display.print_lines(
            [f"{summary.records:,} graphs in {seconds:.1f} s ({rate:,.0f} per second): {out}"]
        )
    display.note_unusable(summary.errors, summary.first_errors, summary.records)
    return {
        "out": str(out),
        "records": summary.records,
        "errors": summary.errors,
        "first_errors": list(summary.first_errors),
        "seconds": round(seconds, 3),
    }


def _print_records(source: str, how: Any, options: Namespace) -> dict[str, Any]:
    """Print JSON lines as records come; with --json, all in one object."""
    from cores.data.raw import SHOWN
    from cores.runs.predict import predict_records
    from cores.runs.records import json_line

    kept: list[dict[str, Any]] = []
    count, errors, first = 0, 0, list[str]()
    given = {"device": options.device, "data_root": options.data_root}
    for records, fields in predict_records(options.run, source, how, **given):
        count += len(records)
        failed = [f"{record['id']}: {record['error']}" for record in records if record["error"]]
        errors, first = errors + len(failed), (first + failed)[:SHOWN]
        if options.json:
            kept += [{name: record.get(name) for name in fields} for record in records]
        else:
            sys.stdout.writelines(f"{json_line(record, fields)}\n" for record in records)
            sys.stdout.flush()
    if not count:
        raise UserError(f"{source} holds no graphs")
    if errors == count:
        raise UserError(f"no row of {source} can be used: {'; '.join(first)}")
    display.note_unusable(errors, first, count)
    return {"records": kept, "errors": errors}


PREDICT = Command(
    "predict", "predict new graphs", _parser, _predict, after_interrupt="the same command continues"
)
