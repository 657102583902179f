"""The sufficiency of a finished run, set with a promise: its metrics and card afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cores.data.catalogue import DATASETS, REGISTERED
from cores.errors import UserError
from cores.files import locked, write_json
from cores.runs.card import DataFacts, model_card, write_card
from cores.runs.device import tuned_cpu
from cores.runs.fit import measure_for_preset
from cores.runs.folder import METRICS, write_promise
from cores.runs.opened import Run
from cores.runs.promise import Promise, tuned_model
from cores.runs.rows import read_metrics
from cores.runs.trained import TrainedModel
from cores.training.supervised import Report, no_report
from cores.verdict import measured_before


@dataclass(frozen=True)
class TunedRun:
    """What is promised of a run, and what became of its metrics."""

    promise: dict[str, Any]
    metrics: dict[str, Any] | None
    """None for a run that has none yet."""
    unmeasured: str | None
    """Why the metrics are still those of the sufficiency before."""


@tuned_cpu()
def tune_run(
    out: Path,
    promise: Promise,
    *,
    data_root: Path | None = None,
    device: str = "auto",
    judge_report: Report = no_report,
) -> TunedRun:
    """Set the least sufficiency of a run at which a promise holds; saved with the run.

    The test graphs are measured again at it, for ``metrics.json`` and the model card.
    Where they cannot be had, both say of which sufficiency they are.

    Args:
        out: The run folder.
        promise: What is asked for.
        data_root: Folder of the named datasets.
        device: Where to compute.
        judge_report: Called after every epoch of the judge, where it is not in the cache.
    """
    with locked(out):
        run = Run.open(out, device=device)
        tuned, found = tuned_model(run.trained, promise)
        metrics, unmeasured = None, None
        if (out / METRICS).exists():
            known = read_metrics(out / METRICS)
            try:
                measured = _measured(replace(run, trained=tuned), data_root, judge_report)
            except UserError as error:  # the promise does not depend on the test graphs
                measured, unmeasured = None, str(error)
            metrics = with_promise(tuned, known, found, measured)
        tuned.save(out)
        write_promise(out, found)
        if metrics is not None:
            facts = DataFacts.read(run.identity.data)
            named = run.identity.place is not None or run.config.dataset in (*DATASETS, *REGISTERED)
            card = model_card(tuned.config, tuned.schema, metrics, facts, names_data=named)
            write_card(out, card)
            write_json(out / METRICS, metrics)
    return TunedRun(found, metrics, unmeasured)


def with_promise(
    tuned: TrainedModel,
    known: Mapping[str, Any],
    promise: Mapping[str, Any],
    measured: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The metrics of a model whose sufficiency was set with a promise.

    Args:
        tuned: The model.
        known: Its metrics before.
        promise: What is promised.
        measured: Those that were measured again; None: they say that they are older.
    """
    metrics = {**known, "promise": dict(promise), **(measured or {})}
    if "accuracy" not in metrics:  # a folder may have lost them
        return metrics
    if measured is None:
        verdicts = [measured_before(known, promise["sufficiency"])]
    else:
        verdicts = tuned.sentences(metrics)
    return metrics | {"verdicts": verdicts}


def _measured(run: Run, data_root: Path | None, report: Report) -> dict[str, Any]:
    """The metrics of a run's test graphs at the new sufficiency."""
    data = run.dataset(data_root)
    judge = run.judge(data, report)
    graphs, names = run.test_graphs(data)
    return measure_for_preset(run.trained, graphs, judge, names)
