"""`cores predict`: new graphs, predicted from the part that the model keeps."""

import sys
from argparse import Namespace
from pathlib import Path
from time import perf_counter
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.inputs import add_input, add_predict_options, add_run, predict_options
from cores.cli.scheduler import add_scheduler, certificates
from cores.cli.values import check_workers, named_path
from cores.errors import UserError


def _parser() -> CommandParser:
    parser = CommandParser(
        "Predict graphs with a trained model: one record per graph, in the order of the input. "
        "The same command again continues after an interruption.",
    )
    add_run(parser)
    add_input(parser)
    parser.add_argument(
        "--out",
        type=named_path,
        metavar="FILE",
        help="File that ends in .csv, .jsonl or .parquet (.gz may follow); for a folder of files, "
        "a folder (default: JSON lines on standard output).",
    )
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="Processes (default: 1)."
    )
    add_scheduler(
        parser,
        "Predict the files of a folder on the workers of this dask scheduler, e.g. "
        "tls://head:8786.",
    )
    add_predict_options(parser)
    return parser


def _predict(options: Namespace) -> dict[str, Any]:
    check_workers(options.workers)
    certificates(options)
    run, source, out = options.run, options.input, options.out
    if out is None and (options.workers > 1 or options.scheduler):
        raise UserError("--workers and --scheduler need --out")
    from cores.data.inputs.sources import holds_rows

    how = predict_options(options)
    begin = perf_counter()
    if out is None:
        return _print_records(run, source, how, options)
    folder = Path(source).is_dir() and holds_rows(Path(source))
    if options.scheduler and not folder:
        raise UserError(f"--scheduler predicts the files of a folder, {source} is none")
    summary = (_into_folder if folder else _into_file)(run, source, out, how, options)
    seconds = perf_counter() - begin
    result = {
        "out": str(out),
        "records": summary.records,
        "errors": summary.errors,
        "first_errors": list(summary.first_errors),
        "seconds": round(seconds, 3),
    }
    if not options.json:
        rate = summary.records / seconds
        display.print_lines(
            [f"{summary.records:,} graphs in {seconds:.1f} s ({rate:,.0f} per second): {out}"]
        )
    _note_errors(summary.errors, summary.records, summary.first_errors)
    return result


def _into_file(run: Path, source: str, out: Path, how: Any, options: Namespace) -> Any:
    from cores.data.inputs.sources import count_rows
    from cores.runs.predict import predict_file

    with display.rows_progress("graphs", count_rows(Path(source))) as advance:
        return predict_file(
            run,
            source,
            out,
            how,
            device=options.device,
            data_root=options.data_root,
            workers=options.workers,
            advance=advance,
        )


def _into_folder(run: Path, source: str, out: Path, how: Any, options: Namespace) -> Any:
    from cores.data.inputs.sources import partitions
    from cores.runs.predict import predict_folder

    with display.rows_progress("files", len(partitions(Path(source)))) as advance:
        return predict_folder(
            run,
            Path(source),
            out,
            how,
            device=options.device,
            workers=options.workers,
            scheduler=options.scheduler,
            certificates=certificates(options),
            advance=advance,
        )


def _print_records(run: Path, source: str, how: Any, options: Namespace) -> dict[str, Any]:
    """JSON lines on standard output, as they come; with --json, all in one object."""
    from cores.data.raw import SHOWN
    from cores.runs.predict import predict_records
    from cores.runs.records import json_line

    kept: list[dict[str, Any]] = []
    count, errors, first = 0, 0, list[str]()
    chunks = predict_records(run, source, how, device=options.device, data_root=options.data_root)
    for records, fields in chunks:
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
    _note_errors(errors, count, first)
    return {"records": kept, "errors": errors}


def _note_errors(errors: int, records: int, first: Any) -> None:
    if errors:
        more = "; …" if errors > len(first) else ""
        told = " ".join("; ".join(first).split())
        display.print_note(f"{errors:,} of {records:,} rows could not be used: {told}{more}")


PREDICT = Command(
    "predict",
    "predict new graphs",
    _parser,
    _predict,
    after_interrupt="the same command continues",
    takes_scripts=True,
)
