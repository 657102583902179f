"""One configuration, one run folder: data, split, training, weights, metrics."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from cores.config import RunConfig
from cores.data.catalogue import DATASETS, REGISTERED
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.data.splits import split_dataset
from cores.errors import UserError
from cores.files import locked, read_json, write_json
from cores.graphs.store import GraphStore
from cores.models.sparse import SparseClassifier
from cores.runs.device import choose_device, tuned_cpu
from cores.runs.fit import PreparedData, fit_model, measure
from cores.runs.folder import (
    METRICS,
    check_data,
    is_finished,
    read_source,
    write_identity,
)
from cores.runs.trained import DataSchema, TrainedModel
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
    device: str = "auto",
    resume: bool = False,
    report: Report = no_report,
    warm_ups: Path | None = None,
) -> dict[str, Any]:
    """Train one configuration into a run folder and return its metrics.

    Everything that can be wrong with the input is found before the folder is made. With
    ``resume``, an interrupted run goes on, a finished one is left as it is, and where there is none
    yet it starts. In ``warm_ups``, runs that differ in the reward alone share the part of their
    training that does not depend on it.
    """
    if is_finished(out, config, resume):
        return _metrics(out)
    chosen_device = choose_device(device)
    dataset = load_dataset(config.dataset, data_root)
    if config.spec.removes is not None:  # the judge divides the graphs in its own way
        split_dataset(dataset, config.split, judges.parts_like(config.parts))
    data = PreparedData.of(dataset, config, chosen_device)

    with locked(out):
        if is_finished(out, config, resume):  # another process may have come first
            return _metrics(out)
        check_data(out, dataset.fingerprint)

        def begin(schema: DataSchema) -> None:
            named = config.dataset in (*DATASETS, *REGISTERED)
            source = None if named else Path(config.dataset).absolute()
            write_identity(out, config, asdict(schema), chosen_device, source)

        fitted = fit_model(config, data, folder=out, report=report, warm_ups=warm_ups, begin=begin)
        fitted.trained.save(out)
        judge = _judge(config, dataset, chosen_device)
        metrics = {
            "dataset": dataset.name,
            "model": config.model,
            "conv": config.conv,
            "preset": config.preset,
            "split": config.split,
            "seed": config.seed,
            **measure(fitted.trained, data.part("test"), config.alpha, judge),
            "epochs": fitted.epochs,
            "best_epoch": fitted.best_epoch,
            "seconds": round(fitted.seconds, 3),
        }
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
    sample: bool = False,
) -> dict[str, Any]:
    """Measure a saved model on its own test split, or on all graphs of another dataset.

    With ``sample`` the subgraphs are drawn from the policy, seeded by the run's seed. Sets are left
    out then: they were calibrated on the mode's subgraphs.
    """
    chosen_device = choose_device(device)
    trained = TrainedModel.load(out)
    config = trained.config
    config = replace(
        config,
        alpha=config.alpha if alpha is None else alpha,
        sets=config.sets.changed(score, per_class),
    )
    trained = replace(trained, config=config)
    if sample:
        if not isinstance(trained.model, SparseClassifier):
            raise UserError(f"`sample` needs a model with a policy; {out} holds a {config.model}")
        trained.model.sampling = True
        trained = trained.without_calibration()
    data = load_dataset(read_source(out) if dataset is None else dataset, data_root)
    graphs = data.graphs
    if dataset is None:
        check_data(out, data.fingerprint)
    own = data.fingerprint == trained.schema.fingerprint  # then only its test part was held out
    judge = None
    if own:
        graphs = graphs.subset(split_dataset(data, config.split, config.parts).test)
        judge = _judge(config, data, chosen_device)
    graphs = _relabelled(data, graphs, trained.schema, out)
    trained.model.to(chosen_device)
    with forked_rng(chosen_device):
        torch.manual_seed(config.seed)
        metrics = measure(trained, graphs.to(chosen_device), config.alpha, judge)
    return {
        "run": str(out),
        "dataset": data.name,
        "model": config.model,
        "conv": config.conv,
        "preset": config.preset,
        "split": config.split if own else None,
        "seed": config.seed,
        **metrics,
    }


def _judge(config: RunConfig, dataset: Dataset, device: torch.device) -> Judge | None:
    """The judge of a model that removes something."""
    if config.spec.removes is None:
        return None
    return judge_of(dataset, config.split, config.conv, config.spec.removes, device, config.parts)


def _metrics(out: Path) -> dict[str, Any]:
    metrics = read_json(out / METRICS)
    if not isinstance(metrics, dict) or "accuracy" not in metrics:
        raise UserError(f"{out / METRICS} is damaged; delete it and go on with resume=True")
    return metrics


def _listed(names: tuple[str, ...]) -> str:
    """A few names, and how many there are."""
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"{len(names)}: {shown}" if names else "none"


def _relabelled(data: Dataset, graphs: GraphStore, schema: DataSchema, out: Path) -> GraphStore:
    """The graphs with the model's own class numbers; refuses data that the model cannot read."""
    for ours, theirs, what in (
        (schema.feature_names, data.feature_names, "node features"),
        (schema.edge_feature_names, data.edge_feature_names, "edge features"),
    ):
        if ours != theirs:
            raise UserError(
                f"{data.name} has other {what} ({_listed(theirs)}) "
                f"than the model in {out} was trained on ({_listed(ours)})"
            )
    unknown = [name for name in data.class_names if name not in schema.class_names]
    if unknown:
        raise UserError(
            f"{data.name} has the label {unknown[0]}, "
            f"the model in {out} knows {', '.join(schema.class_names)}"
        )
    numbers = torch.tensor([schema.class_names.index(name) for name in data.class_names])
    return replace(graphs, y=numbers[graphs.y])
