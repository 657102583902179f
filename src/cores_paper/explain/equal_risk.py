"""The dial of CORES and the orders of other methods at equal risk: same classifier, same graphs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from cores import GraphStore, UserError
from cores.config import Removal, RunConfig
from cores.models.sparse import SparseClassifier
from cores.runs.device import tuned_cpu
from cores.runs.fit import PreparedData
from cores.runs.rows import Row
from cores.runs.runner import Outcome
from cores.training.state import forked_rng
from cores_paper.explain.cases import run_cases
from cores_paper.explain.comparison import ComparedCase
from cores_paper.explain.comparison_rows import row_key
from cores_paper.explain.cuts import (
    Cuts,
    better_rule,
    controlled_setting,
    dial_cuts,
    ordered_cuts,
    rules_of,
)
from cores_paper.explain.equal_risk_rows import EQUAL_RISK, ORDERS, order_of
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
class RiskCase(ComparedCase):
    """What all orders are measured by: one classifier, whose model has a dial."""

    file = ROWS
    kind = EQUAL_RISK
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

    def keys(self, method: str) -> list[str]:
        """Names of the rows of a method, one for each loss."""
        runs = [self.runs.configs[name].key for name in self.models_of(method)]
        data = self.runs.dataset.fingerprint
        return [
            row_key(["equal-risk", RECIPE, method, [max_loss, self.confidence], runs, data])
            for max_loss in self.max_losses
        ]

    def rows(self, method: str) -> list[Row]:
        """Cut the graphs in the order of a method, and measure what each loss allows."""
        with forked_rng(self.runs.device):
            torch.manual_seed(self.config.seed)
            cuts = self._cuts(method)
        return [
            self.row(method, self.config, key, **self._measured(max_loss, cuts))
            for key, max_loss in zip(self.keys(method), self.max_losses, strict=True)
        ]

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

    def _measured(self, max_loss: float, cuts: Mapping[str, Mapping[str, Cuts]]) -> dict[str, Any]:
        """What the sparsest cut keeps and loses that keeps the promise."""
        rule = better_rule({name: found["selection"] for name, found in cuts.items()}, max_loss)
        place = controlled_setting(cuts[rule]["calibration"], max_loss, self.confidence)
        return {
            "removal": self.removal,
            "rule": rule,
            "max_loss": max_loss,
            "confidence": self.confidence,
            **cuts[rule]["test"].metrics(place),
            "setting": place,
            "graphs": len(self.parts["test"]),
            "calibration_graphs": len(self.parts["calibration"]),
            "selection_graphs": len(self.parts["selection"]),
        }


@tuned_cpu()
def equal_risk(
    dataset: str,
    methods: Sequence[str],
    out: Path,
    *,
    removal: Removal = "node",
    max_losses: Sequence[float] = MAX_LOSSES,
    confidence: float | None = None,
    splits: Sequence[int] = (1, 2, 3),
    seeds: Sequence[int] = (0,),
    done: Callable[[Outcome], None] = lambda outcome: None,
    measured: Callable[[str], None] = lambda name: None,
    **options: Any,
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
        splits: Numbers of the splits.
        seeds: Of the runs; every split is run with every seed.
        done: Called with every run as it ends.
        measured: Called with the name of every method and split as it is measured.
        **options: Of :func:`~cores_paper.explain.cases.run_cases`: conv, settings, workers, …
    """
    check_promises(max_losses, confidence)
    dial = {f"cores-{removal}": {"reward": {"dial": True}}}
    cases = run_cases(
        dataset,
        models_of(methods, removal),
        out,
        splits=splits,
        seeds=seeds,
        done=done,
        changes=dial,
        **options,
    )
    ordered = [name for name in ORDERS if name in methods]
    found = (RiskCase(case, removal, max_losses, confidence) for case in cases)
    return [row for case in found for row in case.all_rows(ordered, measured)]


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
