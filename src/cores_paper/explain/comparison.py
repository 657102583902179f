"""Methods of explaining, compared in one run: same graphs, same splits and seeds, equal shares."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cores import GraphStore, UserError, __version__
from cores.config import Removal, RunConfig
from cores.evaluation.explanations import truth_auc
from cores.evaluation.predictions import predict
from cores.evaluation.scores import Scores
from cores.runs.device import tuned_cpu
from cores.runs.fit import PreparedData, training_graphs
from cores.runs.folder import METRICS, commit, machine_of
from cores.runs.rows import Row, cell, read_metrics
from cores.runs.runner import Outcome
from cores.training.judge import judge_of
from cores.training.state import forked_rng
from cores_paper.explain.cases import Case, run_cases
from cores_paper.explain.comparison_rows import EXPLANATIONS, method_of, row_key
from cores_paper.explain.equal_share import EqualShare
from cores_paper.explain.peers import PREPARE, RECIPE
from cores_paper.tables.rows import kept_rows

ROWS = "explanations.csv"
"""File of the rows, beside the run folders."""
REFERENCES: dict[Removal, str] = {"node": "cores-node", "edge": "cores-edge"}
"""The models that say how much of every graph is kept."""


@dataclass(frozen=True)
class ExplainedCase:
    """One split and seed: all methods are measured on the same graphs and the same share of each.

    Every method gives a row.
    """

    runs: Case
    most_graphs: int | None

    def all_rows(self, methods: Iterable[str], told: Callable[[str], None]) -> list[Row]:
        """The rows from the file, and new ones, which are written as they come."""
        rows: list[Row] = []
        for method in methods:
            if self.runs.failed & {*models_of([method])}:
                continue
            measure, path = partial(self.rows, method), self.runs.out / ROWS
            rows += kept_rows(path, EXPLANATIONS, [self.key(method)], measure)
            told(f"{method} (split {rows[-1]['split']}, seed {rows[-1]['seed']})")
        return rows

    @cached_property
    def data(self) -> PreparedData:
        """The graphs; all models of a case share the test part."""
        config = self.runs.configs[REFERENCES["edge"]]
        return PreparedData.of(self.runs.dataset, config, self.runs.device)

    @cached_property
    def graphs(self) -> GraphStore:
        """The test graphs that are explained."""
        return self.data.graphs.subset(evenly(self.data.split.test, self.most_graphs))

    @cached_property
    def shares(self) -> list[EqualShare]:
        """What is kept of every graph, of nodes and of edges, and the judges."""
        found = []
        for removal, name in REFERENCES.items():
            ratio = predict(self.runs.model(name), self.graphs).kept_ratio(self.graphs, removal)
            judge = judge_of(self.runs.dataset, self.runs.configs[name], self.runs.device)
            found.append(EqualShare(self.graphs, removal, ratio, judge.classifier))
        return found

    def key(self, method: str) -> str:
        """Name the row of a method."""
        names = (method_of(method).model, *REFERENCES.values())
        runs = [self.runs.configs[name].key for name in names]
        data = self.runs.dataset.fingerprint
        return row_key([method, RECIPE, runs, data, self.most_graphs])

    def rows(self, method: str) -> list[Row]:
        """Explain the test graphs by a method, and measure it; one row."""
        name = method_of(method).model
        config = self.runs.configs[name]
        found = self._measured(method, config) | {
            "dataset": self.runs.dataset.name,
            "method": method,
            "model": name,
            "conv": config.conv,
            "split": config.split,
            "seed": config.seed,
            "training_seconds": read_metrics(self.runs.folder(name) / METRICS).get("seconds"),
            "key": self.key(method),
            "version": __version__,
            "commit": commit(),
            "machine": machine_of(self.runs.device),
        }
        return [{column: cell(found.get(column)) for column in EXPLANATIONS.columns}]

    def _measured(self, method: str, config: RunConfig) -> dict[str, Any]:
        model = self.runs.model(config.model)
        training = self.data.graphs.subset(training_graphs(config, self.data.split))
        with forked_rng(self.runs.device):
            torch.manual_seed(config.seed)
            explain, setup = self._timed(PREPARE[method], model, training, config.seed)
            explain(self.graphs.subset(torch.arange(1)))  # what comes first is slower
            scores, seconds = self._timed(explain, self.graphs)
        plain = self.runs.model(config.model)  # some methods leave traces in the one they explain
        at_share = {
            f"{share.removal}_{metric}": value
            for share in self.shares
            for metric, value in share.metrics(scores, plain).items()
        }
        return {
            "graphs": len(self.graphs),
            **truth_metrics(scores, self.graphs),
            **{f"{share.removal}_ratio": float(share.ratio.mean()) for share in self.shares},
            **at_share,
            "seconds_per_graph": seconds / len(self.graphs),
            "setup_seconds": setup if method in TRAINED else None,
        }

    def _timed(self, action: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
        """What an action gives, and its seconds."""
        begin = self._clock()
        return action(*arguments), self._clock() - begin

    def _clock(self) -> float:
        if self.runs.device.type == "cuda":
            torch.cuda.synchronize(self.runs.device)
        return time.perf_counter()


TRAINED = ("pgexplainer",)
"""Methods that are trained for themselves, after the model that they explain."""


def evenly(index: Tensor, most: int | None) -> Tensor:
    """At most so many positions, evenly spaced.

    >>> evenly(torch.arange(10), 4).tolist(), evenly(torch.arange(3), 4).tolist()
    ([0, 2, 5, 7], [0, 1, 2])
    """
    if most is None or most >= len(index):
        return index
    return index[torch.arange(most) * len(index) // most]


def truth_metrics(scores: Scores, graphs: GraphStore) -> dict[str, float | int | None]:
    """AUCs of the scores over the graphs with a known reason; None without ground truth."""
    metrics: dict[str, float | int | None] = dict.fromkeys(("node_auc", "edge_auc"))
    if graphs.node_truth is not None:
        batch = graphs.batch(torch.arange(len(graphs)))
        metrics["explained_graphs"] = len(batch.batch[graphs.node_truth].unique())
        metrics["node_auc"] = truth_auc(scores.nodes, graphs.node_truth, graphs.node_ptr)
    if graphs.edge_truth is not None:
        metrics["edge_auc"] = truth_auc(scores.edges, graphs.edge_truth, graphs.edge_ptr)
    return metrics


@tuned_cpu()
def compare_explanations(
    dataset: str,
    methods: Sequence[str],
    out: Path,
    *,
    splits: Sequence[int] = (1, 2, 3),
    seeds: Sequence[int] = (0,),
    graphs: int | None = None,
    done: Callable[[Outcome], None] = lambda outcome: None,
    explained: Callable[[str], None] = lambda name: None,
    **options: Any,
) -> list[Row]:
    """Train the models, explain their test graphs by every method; returns a row per method.

    Neither runs nor rows that are there already are made again. Methods are timed one after the
    other in this process, whatever the number of workers that train.

    Args:
        dataset: A name or a path.
        methods: Names of methods.
        out: Folder of the run folders and of the rows.
        splits: Numbers of the splits.
        seeds: Of the runs; every split is run with every seed.
        graphs: Most test graphs to explain, the same ones by every method; None for all.
        done: Called with every run as it ends.
        explained: Called with the name of every row as it comes.
        **options: Of :func:`~cores_paper.explain.cases.run_cases`: conv, settings, workers, …
    """
    if graphs is not None and graphs < 1:
        raise UserError(f"`graphs` must be positive, got {graphs}")
    cases = run_cases(
        dataset, models_of(methods), out, splits=splits, seeds=seeds, done=done, **options
    )
    once = dict.fromkeys(methods)
    return [row for case in cases for row in ExplainedCase(case, graphs).all_rows(once, explained)]


def models_of(methods: Sequence[str]) -> list[str]:
    """The models that methods explain, and those that say how much is kept."""
    explained = (method_of(name).model for name in methods)
    return list(dict.fromkeys((*explained, *REFERENCES.values())))
