"""One configuration, one run folder: trained, and measured again."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from cores import ranks
from cores.config import Removal, RunConfig
from cores.data.catalogue import DATASETS, REGISTERED
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError
from cores.evaluation.faithfulness import agreement_metrics, faithfulness_metrics
from cores.evaluation.predictions import predict
from cores.files import locked, write_json
from cores.models.sparse import SparseClassifier
from cores.runs.card import DataFacts, model_card, write_card
from cores.runs.device import choose_device, tuned_cpu
from cores.runs.fit import PreparedData, fit_model, measure, measure_for_preset
from cores.runs.folder import (
    CONFIG,
    METRICS,
    Identity,
    is_finished,
    write_identity,
    write_promise,
)
from cores.runs.inputs import PredictOptions, labelled_graphs
from cores.runs.opened import Run
from cores.runs.rows import read_metrics
from cores.runs.trained import DataSchema, TrainedModel
from cores.tasks import TASKS
from cores.training import judge as judges
from cores.training.judge import judge_of
from cores.training.state import forked_rng
from cores.training.supervised import Report, no_report


def load_data(
    config: RunConfig, data_root: Path | None = None, columns: ColumnNames | None = None
) -> Dataset:
    """Read the dataset of a configuration."""
    return load_dataset(
        config.dataset,
        data_root,
        columns=columns,
        task=config.task,
        reach=config.network.reach,
    )


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

    Everything that can be wrong with the input is found before the folder is made. Of processes
    that train together (:func:`cores.ranks.joined`), the first one alone reads and writes the
    folder.

    Args:
        config: The settings of the run.
        out: The run folder.
        data_root: Folder of the named datasets.
        columns: Which columns of a file hold what.
        dataset: The data, if they have been read already.
        device: Where to compute.
        resume: Continue an interrupted run, leave a finished one as it is, and start one where
            there is none yet.
        report: Called after every epoch of the training.
        judge_report: Called after every epoch of the judge's training; if the judge is in the
            cache, once, with its last epoch, before the training.
        warm_ups: Folder in which runs that differ in the reward alone share the part of their
            training that does not depend on it.
    """
    known = None if columns is None else asdict(columns)

    def finished() -> bool:
        return bool(ranks.of_first(lambda: is_finished(out, config, resume, known)))

    if finished():
        return _metrics(out)
    chosen_device = choose_device(device)
    if dataset is None:
        dataset = load_data(config, data_root, columns)
    if config.spec.removes is not None:
        judges.judge_parts(dataset, config)  # the judge divides the graphs in its own way
        if judges.is_kept(dataset, config, chosen_device):
            judge_report(judges.EPOCHS, {})
    data = PreparedData.of(dataset, config, chosen_device)

    with locked(out) if ranks.leads() else nullcontext():
        if finished():  # another process may have come first
            return _metrics(out)
        if ranks.leads() and (out / CONFIG).exists():
            Identity.read(out).check_data(dataset)
        _check_alike(config, dataset)

        facts = DataFacts.of(dataset, data.split)

        def begin(schema: DataSchema) -> None:
            if not ranks.leads():
                return
            named = config.dataset in (*DATASETS, *REGISTERED)
            place = None if named else Path(config.dataset).absolute()
            write_identity(
                *(out, config, asdict(schema), chosen_device),
                *(place, known, dataset.division, facts.plain),
            )

        fitted = fit_model(config, data, folder=out, report=report, warm_ups=warm_ups, begin=begin)
        if ranks.leads():
            fitted.trained.save(out)
            write_promise(out, fitted.facts.get("promise"))
        judge = None
        if config.spec.removes is not None:
            judge = judge_of(dataset, config, chosen_device, judge_report)
        metrics = {
            **metric_names(config),
            "dataset": dataset.name,
            **measure_for_preset(fitted.trained, data.part("test"), judge, data.names("test")),
            **fitted.facts,
        }
        metrics["verdicts"] = fitted.trained.sentences(metrics)
        if ranks.leads():
            schema = fitted.trained.schema
            write_card(out, model_card(config, schema, metrics, facts, names_data=True))
            write_json(out / METRICS, metrics)
    return metrics


@tuned_cpu()
def evaluate_run(
    folder: Path,
    options: PredictOptions | None = None,
    *,
    dataset: str | None = None,
    data_root: Path | None = None,
    device: str = "auto",
    sample: bool = False,
    explanations: bool = False,
    others: Sequence[Path] = (),
) -> dict[str, Any]:
    """Measure a saved model on its own test split, or on all graphs of another dataset.

    Args:
        folder: The run folder.
        options: Prediction sets, parts, and how another dataset is read.
        dataset: The name or path of another dataset; its graphs get the model's own columns.
        data_root: Folder of the named datasets.
        device: Where to compute.
        sample: Draw the subgraphs from the policy, seeded by the run's seed, as is done where the
            run's preset says so. There are no prediction sets then: they were calibrated on the
            mode's subgraphs.
        explanations: Also measure how faithful the kept parts of the mode are.
        others: Folders of runs that differ in the seed: also measure whether they keep the same.
    """
    options = options or PredictOptions()
    run = Run.open(folder, options, device=device)
    trained, config = run.trained, run.config
    if explanations:
        trained.need_classes("`explanations`")
    sample = sample or config.samples
    sampler = _with_policy(run, "sample") if sample else None
    if sampler is not None:
        _check_sampled(trained)
        sampler.sampling = True
        trained = trained.without_calibration()
    chooser = _with_policy(run, "explanations") if explanations else None
    shown = options.sufficiency, options.parts
    compared = [other.showing(*shown) for other in _others(run, others)] if others else []
    if dataset is None:
        data = run.dataset(data_root)
    else:
        data = labelled_graphs(
            dataset, trained.schema, run.columns, data_root, options.on_error, options.on_unknown
        )
    own = data.fingerprint == trained.schema.fingerprint  # then only its test part was held out
    if own and dataset is not None:  # the parts may come from a column that is not named this time
        data = run.read(dataset, data_root)
    judge = None
    if own:
        if not all(torch.equal(other.test, trained.test) for other in compared):
            raise UserError("`other` names a run with another test part; compare runs of one split")
        graphs, names = run.test_graphs(data)
        judge = run.judge(data)
    else:
        graphs = data.graphs.to(run.device)
        names = [data.graph_name(at) for at in range(len(data))]
    with forked_rng(run.device):
        torch.manual_seed(config.seed)
        predictions = predict(trained.model, graphs, names)
        metrics = measure(trained, graphs, config.alpha, judge, names, predictions)
        if sampler is not None and (explanations or compared):  # both are about the mode
            sampler.sampling = False
            predictions = predict(sampler, graphs, names)
        if chooser is not None:
            metrics |= faithfulness_metrics(chooser, graphs, predictions)
        if compared:
            found = [predict(other.model.to(run.device), graphs) for other in compared]
            metrics |= agreement_metrics([predictions, *found], graphs, _removal(trained, folder))
    unusable = data.unusable
    return {
        "run": str(folder),
        **metric_names(config),
        "dataset": data.name,
        "split": config.split if own else None,
        **metrics,
        "verdicts": trained.sentences(metrics),
        **(
            {}
            if unusable is None
            else {"errors": unusable.count, "first_errors": [str(row) for row in unusable.first]}
        ),
    }


def metric_names(config: RunConfig) -> dict[str, Any]:
    """Name a run as ``metrics.json`` does."""
    names = ("dataset", "model", "conv", "preset", "split", "seed")
    return {name: getattr(config, name) for name in names}


def _with_policy(run: Run, asked: str) -> SparseClassifier:
    """The model of a run that was asked for something that needs a policy."""
    if not isinstance(run.trained.model, SparseClassifier):
        kind = run.config.model
        raise UserError(f"`{asked}` needs a model with a policy; {run.folder} holds a {kind}")
    return run.trained.model


def _check_sampled(trained: TrainedModel) -> None:
    """Refuse to draw from a policy whose part is neither seen nor shown."""
    shown = trained.config.explanation
    if trained.has_committee and shown.class_from == "whole" and shown.parts != "policy":
        raise UserError('no sample of the policy is seen or shown; add parts="policy"')


def _others(run: Run, others: Sequence[Path]) -> list[TrainedModel]:
    """The models of other runs on the same data, which remove the same.

    A pattern of the shell may name the run itself among them, which is left out.
    """
    removal = _removal(run.trained, run.folder)
    found = []
    for folder in dict.fromkeys(other.resolve() for other in others):
        if folder == run.folder.resolve():
            continue
        other = TrainedModel.load(folder)
        if other.schema != run.trained.schema:
            raise UserError(
                f"the run in {folder} was trained on other data than that in {run.folder}"
            )
        if _removal(other, folder) != removal:
            raise UserError(
                f"{folder} holds a {other.config.model}, {run.folder} a {run.config.model}; runs "
                "are compared that remove the same"
            )
        found.append(other)
    if not found:
        raise UserError(f"`other` names no run but {run.folder} itself")
    return found


def _removal(trained: TrainedModel, folder: Path) -> Removal:
    removes = trained.config.spec.removes
    if removes is None:
        raise UserError(f"a {trained.config.model} removes nothing ({folder}): nothing to compare")
    return removes


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
