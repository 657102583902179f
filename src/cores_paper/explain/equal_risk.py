"""The dial of CORES and the orders of other methods at equal risk: same classifier, same graphs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from cores import GraphStore, UserError, __version__
from cores.config import Removal, RunConfig
from cores.data.inputs.columns import ColumnNames
from cores.models.sparse import SparseClassifier
from cores.runs.device import tuned_cpu
from cores.runs.fit import PreparedData
from cores.runs.folder import commit, machine_of
from cores.runs.rows import Row, cell, kept_rows
from cores.runs.runner import Outcome
from cores.runs.series import Case, Series
from cores.training.state import forked_rng
from cores_paper.explain.comparison_rows import row_key
from cores_paper.explain.cuts import (
    Cuts,
    better_rule,
    controlled_setting,
    dial_cuts,
    ordered_cuts,
    rules_of,
)
from cores_paper.explain.equal_risk_rows import COLUMNS, EQUAL_RISK, ORDERS, order_of
from cores_paper.explain.peers import (
    Prepare,
    of_gradients,
    own_scores,
    random_scores,
    saliency,
)

RECIPE = 1
"""Version of the measurement: rows of another one are not comparable."""
ROWS = "equal-risk.csv"
"""File of the rows, beside the run folders."""
MAX_LOSSES = (0.02, 0.05, 0.1)
DIAL = "cores"
PARTS = ("selection", "calibration", "test")
"""Graphs that choose how to cut, that promise, and that are measured."""
PREPARE: dict[str, Prepare] = {
    "gsat": own_scores,
    "sagpool": own_scores,
    "gpool": own_scores,
    "saliency": partial(of_gradients, scores=saliency),
    "random": random_scores,
}
"""How each order but the dial's is made ready."""


@dataclass(frozen=True)
class RiskCase:
    """The runs of one split and seed, and what all orders are measured by."""

    runs: Case
    """That of CORES has a dial."""
    removal: Removal
    max_losses: Sequence[float]
    confidence: float | None

    @property
    def config(self) -> RunConfig:
        """Of the run whose classifier predicts for all."""
        return self.runs.configs[f"cores-{self.removal}"]

    @cached_property
    def cores(self) -> SparseClassifier:
        """The model with the dial, and the classifier that predicts for all."""
        model = self.runs.model(self.config.model)
        assert isinstance(model, SparseClassifier)
        return model

    @cached_property
    def parts(self) -> dict[str, GraphStore]:
        """The graphs that nothing was trained on."""
        data = PreparedData.of(self.runs.dataset, self.config, self.runs.device)
        found = {name: data.part(name) for name in PARTS}
        for name in ("selection", "calibration"):
            if not len(found[name]):
                raise UserError(f"there is no {name} part; give it a share with parts.{name}")
        return found

    def models_of(self, method: str) -> list[str]:
        """The models that a method needs."""
        own = order_of(method).model
        return [self.config.model, *([] if own is None else [own])]

    def key(self, method: str, max_loss: float) -> str:
        """Names the row of a method."""
        runs = [self.runs.configs[name].key for name in self.models_of(method)]
        promise, data = [max_loss, self.confidence], self.runs.dataset.fingerprint
        return row_key(["equal-risk", RECIPE, method, promise, runs, data])

    def keys(self, method: str) -> list[str]:
        """Those of all losses."""
        return [self.key(method, max_loss) for max_loss in self.max_losses]

    def rows(self, method: str) -> list[Row]:
        """Cut the graphs in the order of a method, and measure what each loss allows."""
        with forked_rng(self.runs.device):
            torch.manual_seed(self.config.seed)
            cuts = self._cuts(method)
        return [self._row(method, max_loss, cuts) for max_loss in self.max_losses]

    def _cuts(self, method: str) -> dict[str, dict[str, Cuts]]:
        """What is predicted from the cut graphs of every part, by every rule."""
        if method == DIAL:
            turned = {name: dial_cuts(self.cores, part) for name, part in self.parts.items()}
            return {"dial": turned}
        own = order_of(method).model
        model = self.cores if own is None else self.runs.model(own)
        order = PREPARE[method](model, self.parts["selection"], self.config.seed)
        scores = {name: order(part) for name, part in self.parts.items()}
        return {
            rule: {
                name: ordered_cuts(self.cores.classifier, part, self.removal, scores[name], kept)
                for name, part in self.parts.items()
            }
            for rule, kept in rules_of(scores["selection"], self.removal).items()
        }

    def _row(self, method: str, max_loss: float, cuts: Mapping[str, Mapping[str, Cuts]]) -> Row:
        rule = better_rule({name: found["selection"] for name, found in cuts.items()}, max_loss)
        place = controlled_setting(cuts[rule]["calibration"], max_loss, self.confidence)
        found = {
            "dataset": self.runs.dataset.name,
            "method": method,
            "removal": self.removal,
            "conv": self.config.conv,
            "split": self.config.split,
            "seed": self.config.seed,
            "rule": rule,
            "max_loss": max_loss,
            "confidence": self.confidence,
            **cuts[rule]["test"].metrics(place),
            "setting": place,
            "graphs": len(self.parts["test"]),
            "calibration_graphs": len(self.parts["calibration"]),
            "selection_graphs": len(self.parts["selection"]),
            "key": self.key(method, max_loss),
            "version": __version__,
            "commit": commit(),
            "machine": machine_of(self.runs.device),
        }
        return {column: cell(found[column]) for column in COLUMNS}


@tuned_cpu()
def equal_risk(
    dataset: str,
    methods: Sequence[str],
    out: Path,
    *,
    removal: Removal = "node",
    max_losses: Sequence[float] = MAX_LOSSES,
    confidence: float | None = None,
    conv: str = "gin",
    splits: Sequence[int] = (1, 2, 3),
    seeds: Sequence[int] = (0,),
    settings: Mapping[str, Any] | None = None,
    workers: int = 1,
    device: str = "auto",
    data_root: Path | None = None,
    columns: ColumnNames | None = None,
    done: Callable[[Outcome], None] = lambda outcome: None,
    measured: Callable[[str], None] = lambda name: None,
) -> list[Row]:
    """Train the models, and measure what every order keeps at the same controlled loss.

    The classifier of CORES predicts for all orders, from the same graphs. The selection part
    chooses how an order cuts, the calibration part which cut loses no more than promised, and what
    that keeps and loses is measured on the test part. Neither runs nor rows that are there already
    are made again.

    Args:
        dataset: A name or a path.
        methods: Names of orders.
        out: Folder of the run folders and of the rows.
        removal: What is cut: ``node`` or ``edge``.
        max_losses: The largest losses, each a comparison of its own.
        confidence: Probability that a promise holds for this classifier; None: in expectation.
        conv: Message-passing layer.
        splits: Numbers of the splits.
        seeds: Of the runs; every split is run with every seed.
        settings: Changes to the default settings, nested.
        workers: Processes that train.
        device: Of the runs, and of the orders.
        data_root: Folder of the datasets.
        columns: Which columns of a file hold what.
        done: Called with every run as it ends.
        measured: Called with the name of every method and split as it is measured.
    """
    check_promises(max_losses, confidence)
    series = Series(dataset, out, conv, settings, workers, device, data_root, columns)
    dial = {f"cores-{removal}": {"reward": {"dial": True}}}
    cases = series.run_cases(models_of(methods, removal), splits, seeds, done, dial)
    return [
        row
        for case in cases
        for row in _rows(RiskCase(case, removal, max_losses, confidence), methods, measured)
    ]


def models_of(methods: Sequence[str], removal: Removal) -> list[str]:
    """The models whose scores are orders, and the one whose classifier predicts for all."""
    scored = (order_of(name).model for name in methods)
    return list(dict.fromkeys([f"cores-{removal}", *(name for name in scored if name)]))


def check_promises(max_losses: Sequence[float], confidence: float | None) -> None:
    """Refuse shares that are none."""
    if not max_losses:
        raise UserError("`max_loss` names nothing")
    for name, share in (*(("max_loss", loss) for loss in max_losses), ("confidence", confidence)):
        if share is not None and not 0 < share < 1:
            raise UserError(f"`{name}` must lie between 0 and 1, got {share:g}")


def _rows(case: RiskCase, methods: Sequence[str], measured: Callable[[str], None]) -> list[Row]:
    """The rows of a case, those from the file and new ones, which are written as they come."""
    rows: list[Row] = []
    for method in (name for name in ORDERS if name in methods):
        if case.runs.failed & {*case.models_of(method)}:
            continue
        measure = partial(case.rows, method)
        rows += kept_rows(case.runs.out / ROWS, EQUAL_RISK, case.keys(method), measure)
        measured(f"{method} (split {case.config.split}, seed {case.config.seed})")
    return rows
