"""One configuration, one run folder: data, split, training, weights, metrics."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cores import ranks
from cores.config import RunConfig
from cores.data.catalogue import DATASETS, REGISTERED
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.labelled import OnError
from cores.data.splits import split_dataset
from cores.errors import UserError
from cores.evaluation.faithfulness import faithfulness_metrics
from cores.evaluation.predictions import predict
from cores.files import locked, write_json
from cores.models.sparse import SparseClassifier
from cores.runs.agreement import agreement, held_out_part, load_others
from cores.runs.card import DataFacts, model_card, write_card
from cores.runs.device import choose_device, tuned_cpu
from cores.runs.fit import PreparedData, fit_model, measure, measure_for_preset
from cores.runs.folder import (
    METRICS,
    MODEL,
    check_data,
    is_finished,
    read_columns,
    read_source,
    write_identity,
    write_promise,
)
from cores.runs.inputs import OnUnknown, labelled_graphs
from cores.runs.rows import read_metrics
from cores.runs.trained import DataSchema, TrainedModel
from cores.tasks import TASKS
from cores.training import judge as judges
from cores.training.judge import Judge, judge_of
from cores.training.state import forked_rng
from cores.training.supervised import Report, no_report


@tuned_cpu()
def train_run(
    config: RunConfig,
    out: Path,
    *,
    data_root: Path | None = None,
    columns: ColumnNames | None = None,
    dataset: Dataset | None = None,
    device: str = "auto",
    resume: bool = False,
    report: Report = no_report,
    judge_report: Report = no_report,
    warm_ups: Path | None = None,
) -> dict[str, Any]:
    """Train one configuration into a run folder and return its metrics.

    Everything that can be wrong with the input is found before the folder is made. With
    ``resume``, an interrupted run goes on, a finished one is left as it is, and where there is none
    yet it starts. In ``warm_ups``, runs that differ in the reward alone share the part of their
    training that does not depend on it. ``columns`` names the columns of a file, and ``dataset``
    is what was read from it, if that was done already. ``report`` is called after every epoch of
    the training, ``judge_report`` after every one of the judge's; if the judge is in the cache,
    once, with its last epoch, before the training. Of processes that train together
    (:func:`cores.ranks.joined`), the first one alone reads and writes the folder.
    """
    known = None if columns is None else asdict(columns)

    def finished() -> bool:
        return bool(ranks.of_first(lambda: is_finished(out, config, resume, known)))

    if finished():
        return _metrics(out)
    chosen_device = choose_device(device)
    if dataset is None:
        dataset = load_dataset(
            config.dataset,
            data_root,
            columns=columns,
            task=config.task,
            reach=config.network.reach,
        )
    if config.spec.removes is not None:
        judges.judge_parts(dataset, config)  # the judge divides the graphs in its own way
        if judges.is_kept(dataset, config, chosen_device):
            judge_report(judges.EPOCHS, {})
    data = PreparedData.of(dataset, config, chosen_device)

    with locked(out) if ranks.leads() else nullcontext():
        if finished():  # another process may have come first
            return _metrics(out)
        if ranks.leads():
            check_data(out, dataset)
        _check_alike(config, dataset)

        def begin(schema: DataSchema) -> None:
            if not ranks.leads():
                return
            named = config.dataset in (*DATASETS, *REGISTERED)
            source = None if named else Path(config.dataset).absolute()
            write_identity(
                out, config, asdict(schema), chosen_device, source, known, dataset.division
            )

        fitted = fit_model(config, data, folder=out, report=report, warm_ups=warm_ups, begin=begin)
        if ranks.leads():
            fitted.trained.save(out)
            write_promise(out, fitted.promise.get("promise"))
        judge = _judge(config, dataset, chosen_device, judge_report)
        metrics = {
            "dataset": dataset.name,
            "model": config.model,
            "conv": config.conv,
            "preset": config.preset,
            "split": config.split,
            "seed": config.seed,
            **measure_for_preset(fitted.trained, data.part("test"), judge, data.names("test")),
            "epochs": fitted.epochs,
            "best_epoch": fitted.best_epoch,
            "seconds": round(fitted.seconds, 3),
            **fitted.promise,
        }
        metrics["verdicts"] = fitted.trained.sentences(metrics)
        if ranks.leads():
            card = model_card(config, metrics, DataFacts.of(data), dataset.task, names_data=True)
            write_card(out, card)
            write_json(out / METRICS, metrics)
    return metrics


@tuned_cpu()
def evaluate_run(
    out: Path,
    *,
    dataset: str | None = None,
    data_root: Path | None = None,
    device: str = "auto",
    alpha: float | None = None,
    score: str | None = None,
    per_class: bool | None = None,
    lam: float | None = None,
    sample: bool = False,
    explanations: bool = False,
    others: Sequence[Path] = (),
    columns: ColumnNames | None = None,
    on_error: OnError = "skip",
    on_unknown: OnUnknown = "error",
) -> dict[str, Any]:
    """Measure a saved model on its own test split, or on all graphs of another dataset.

    Another dataset may be any name or path; its graphs get the model's own columns. ``lam`` is the
    setting of a model with a dial; the other runs are measured there, too.

    With ``sample``, or where the run's preset says so, the subgraphs are
    drawn from the policy, seeded by the run's seed. Sets are left out then: they were calibrated on
    the mode's subgraphs. With ``explanations`` the metrics also
    tell how faithful the kept parts of the mode are, with ``others``, folders of runs that differ
    in the seed, whether those keep the same.
    """
    chosen_device = choose_device(device)
    trained = TrainedModel.load(out).at(lam).with_sets(alpha, score, per_class)
    config = trained.config
    if score is not None or per_class is not None:
        trained.need_sets("a choice of `score` or `per_class`")
    if explanations:
        trained.need_classes("`explanations`")
    sample = sample or config.samples
    sampler = _with_policy(trained, "sample", out) if sample else None
    if sampler is not None:
        sampler.sampling = True
        trained = trained.without_calibration()
    chooser = _with_policy(trained, "explanations", out) if explanations else None
    compared = load_others(out, trained, others) if others else []
    compared = [other.at(lam) for other in compared]
    if dataset is None:
        data = load_dataset(
            read_source(out),
            data_root,
            columns=read_columns(out),
            task=trained.task,
            reach=config.network.reach,
        )
        check_data(out, data)
    else:
        named = replace(columns or ColumnNames(), remembered=read_columns(out))
        data = labelled_graphs(dataset, trained.schema, named, data_root, on_error, on_unknown)
    graphs, judge = data.graphs, None
    names = [data.graph_name(at) for at in range(len(data))]
    own = data.fingerprint == trained.schema.fingerprint  # then only its test part was held out
    if own:
        if dataset is not None:  # the parts may come from a column that is not named this time
            data = load_dataset(
                dataset,
                data_root,
                columns=read_columns(out),
                task=trained.task,
                reach=config.network.reach,
            )
        held_out = held_out_part(trained, data)
        if not all(torch.equal(held_out_part(other, data), held_out) for other in compared):
            raise UserError("`other` names a run with another test part; compare runs of one split")
        check_held_out(out, held_out, data)
        graphs = data.graphs.subset(held_out)
        names = [data.graph_name(at) for at in held_out.tolist()]
        judge = held_out_judge(config, data, held_out, chosen_device)
    trained.model.to(chosen_device)
    with forked_rng(chosen_device):
        torch.manual_seed(config.seed)
        graphs = graphs.to(chosen_device)
        predictions = predict(trained.model, graphs, names)
        metrics = measure(trained, graphs, config.alpha, judge, names, predictions)
        if sampler is not None and (explanations or compared):  # both are about the mode
            sampler.sampling = False
            predictions = predict(sampler, graphs, names)
        if chooser is not None:
            metrics |= faithfulness_metrics(chooser, graphs, predictions)
        if compared:
            metrics |= agreement(trained, predictions, compared, graphs, chosen_device)
    return {
        "run": str(out),
        "dataset": data.name,
        "model": config.model,
        "conv": config.conv,
        "preset": config.preset,
        "split": config.split if own else None,
        "seed": config.seed,
        **metrics,
        "verdicts": trained.sentences(metrics),
        **_unusable(data),
    }


def check_held_out(out: Path, held_out: Tensor, dataset: Dataset) -> None:
    """Refuse a run folder that names test graphs which its dataset does not have."""
    if not bool((held_out < len(dataset)).all()):
        raise UserError(f"{out / MODEL} names test graphs that the dataset does not have")


def held_out_judge(
    config: RunConfig,
    dataset: Dataset,
    held_out: Tensor,
    device: torch.device,
    report: Report = no_report,
) -> Judge | None:
    """The judge of a run's test graphs; None where it could have learnt from them."""
    if not torch.equal(held_out, split_dataset(dataset, config.split, config.parts).test):
        return None
    return _judge(config, dataset, device, report)


def _with_policy(trained: TrainedModel, asked: str, out: Path) -> SparseClassifier:
    """The model of a run that was asked for something that needs a policy."""
    if not isinstance(trained.model, SparseClassifier):
        kind = trained.config.model
        raise UserError(f"`{asked}` needs a model with a policy; {out} holds a {kind}")
    return trained.model


def _unusable(dataset: Dataset) -> dict[str, Any]:
    """How many rows of a file were left out, and the first of them."""
    rows = dataset.unusable
    if rows is None:
        return {}
    return {"errors": rows.count, "first_errors": [str(row) for row in rows.first]}


def _judge(
    config: RunConfig, dataset: Dataset, device: torch.device, report: Report = no_report
) -> Judge | None:
    """The judge of a model that removes something."""
    return None if config.spec.removes is None else judge_of(dataset, config, device, report)


def _check_alike(config: RunConfig, dataset: Dataset) -> None:
    """Processes that train together may run on machines with other files."""
    mine = f"{config.key}-{dataset.fingerprint}-{dataset.division}"
    if ranks.of_first(lambda: mine) != mine:
        raise UserError(
            f"{dataset.name} is not the same for all processes of this training; give all "
            "machines the same data"
        )


def _metrics(out: Path) -> dict[str, Any]:
    metrics = ranks.of_first(lambda: dict(read_metrics(out / METRICS)))
    if all(metrics.get(task.plain.metric) is None for task in TASKS.values()):
        raise UserError(f"{out / METRICS} is damaged; delete it and go on with resume=True")
    return metrics
