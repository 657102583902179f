"""How far does what a policy learnt carry? To other graphs, and to classifiers it never met.

    python benchmarks/policy_gap.py RUN… [--data-root FOLDER]

Of runs with a dial that have their checkpoints. At several settings, how much accuracy a classifier
loses when it sees what the policy keeps in place of full graphs: the referees that rewarded the
policy, on the graphs they rewarded; the same referees on the test part, where the policy has not
been; and the returned classifier there, which never rewarded it. The difference of the first two
is what the policy learnt of its graphs by heart, that of the last two what it learnt of its
referees. Prints means over the runs of a dataset and model, with deviations.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from cores.config import RunConfig
from cores.errors import UserError
from cores.evaluation.dial import predict_settings
from cores.evaluation.predictions import EVALUATION_BATCH, predict_proba
from cores.graphs.store import GraphView
from cores.models.classifier import Classifier
from cores.models.sparse import SparseClassifier
from cores.runs.device import tuned_cpu
from cores.runs.fit import PreparedData, bilevel_state
from cores.training.journal import CHECKPOINT
from cores.training.learner import Learner
from cores.training.state import RandomState, load_state
from cores_paper.tables.table import Table
from inputs import add_runs, load_run, parser

SETTINGS = (0.0, 0.25, 0.5, 0.75)
"""Of the dial; at 1 hardly anything is removed."""
HEAD = ("dataset", "model", "runs", "lambda", "kept", "own graphs", "test graphs", "returned")


def referees_of(
    run: Path, model: SparseClassifier, config: RunConfig, data: PreparedData
) -> Sequence[Learner]:
    """The referees of a run as its checkpoint holds them; their folds follow from the seed."""
    state = bilevel_state(model, config, data, RandomState(config.seed, torch.device("cpu")))
    saved = load_state(run / CHECKPOINT)["parts"]
    for number, learner in enumerate(state.learners):  # the first is the model's own classifier
        learner.load_state_dict(saved[f"learner_{number}"])
    return state.referees


def right(probs: Tensor, labels: Tensor) -> Tensor:
    """The graphs whose label is predicted, at every setting."""
    return (probs.argmax(dim=-1) == labels).double()


def change(model: SparseClassifier, classifier: Classifier, graphs: GraphView) -> Tensor:
    """Of every graph at every setting: right from the kept part, less right from all of it."""
    labels = graphs.y
    full = right(predict_proba(classifier, graphs.batches(EVALUATION_BATCH)), labels)
    return right(predict_settings(model, graphs, SETTINGS, classifier).probs, labels) - full


def gaps(run: Path, data_root: Path | None) -> tuple[tuple[str, str], Tensor]:
    """Dataset and model of a run; kept share and the three losses in percent, by setting."""
    trained, dataset = load_run(run, data_root)
    model = trained.model
    if not isinstance(model, SparseClassifier) or model.policy.lam is None:
        raise UserError(f"{run} has no dial")
    data = PreparedData.of(dataset, trained.config, torch.device("cpu"))
    test = data.part("test").view()
    referees = referees_of(run, model, trained.config, data)
    own = [change(model, each.classifier, each.policy_graphs) for each in referees]
    new = [change(model, each.classifier, test) for each in referees]
    returned = change(model, model.classifier, test)
    kept = predict_settings(model, test, SETTINGS).kept_ratio
    found = [kept, *(torch.cat(each, dim=1) for each in (own, new)), returned]
    means = torch.stack([each.double().mean(dim=1) for each in found])
    return (dataset.name, trained.config.model), 100 * means.T


def lines_of(name: tuple[str, str], runs: Sequence[Tensor]) -> list[list[str]]:
    """Of the table, one per setting."""
    stacked = torch.stack(list(runs))  # [R, S, 4]
    spread = stacked.std(dim=0) if len(runs) > 1 else torch.zeros_like(stacked[0])
    return [
        [*name, str(len(runs)), f"{lam:g}"]
        + [f"{mean:.1f} ± {std:.1f}" for mean, std in zip(means, stds, strict=True)]
        for lam, means, stds in zip(
            SETTINGS, stacked.mean(dim=0).tolist(), spread.tolist(), strict=True
        )
    ]


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    add_runs(options)
    given = options.parse_args()
    found: dict[tuple[str, str], list[Tensor]] = defaultdict(list)
    with tuned_cpu():
        for run in given.runs:
            name, means = gaps(run, given.data_root)
            found[name].append(means)
    lines = [line for name, runs in found.items() for line in lines_of(name, runs)]
    print(Table(list(HEAD), lines).markdown())


if __name__ == "__main__":
    main()
