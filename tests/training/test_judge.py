"""The judge knows the task, not the policy; it is made once and kept."""

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from cores.config import NetworkConfig, PartsConfig, RunConfig
from cores.data import splits
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.data.splits import split_dataset
from cores.evaluation.predictions import Predictions, predict_proba
from cores.graphs.store import GraphStore
from cores.tasks.metrics import balanced_accuracy
from cores.training import judge as judges
from cores.training.judge import judge_of
from cores.training.state import load_state, save_state
from cores.training.step import Step

CPU = torch.device("cpu")


@pytest.fixture
def small(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tu_folder: Path
) -> Callable[..., Dataset]:
    """Twelve graphs, a short recipe, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(judges, "EPOCHS", 2)
    return lambda: load_dataset(str(tu_folder))


def cached(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "cores-gnn" / "judges").iterdir())


def run(
    split: int = 1, conv: str = "gin", removal: str = "node", parts: PartsConfig | None = None
) -> RunConfig:
    return RunConfig(model=f"cores-{removal}", conv=conv, split=split, parts=parts or PartsConfig())


def test_a_judge_is_trained_once_and_then_read(
    small: Callable[..., Dataset], tmp_path: Path
) -> None:
    first = judge_of(small(), run(), CPU)
    (path,) = cached(tmp_path)
    written = path.stat().st_mtime_ns
    again = judge_of(small(), run(), CPU)
    assert path.stat().st_mtime_ns == written
    for one, other in zip(
        first.classifier.state_dict().values(), again.classifier.state_dict().values(), strict=True
    ):
        assert torch.equal(one, other)


def test_what_decides_its_weights_decides_its_name(
    small: Callable[..., Dataset], tmp_path: Path
) -> None:
    for split, conv, removal in ((1, "gin", "node"), (2, "gin", "node"), (1, "gcn", "node")):
        judge_of(small(), run(split, conv, removal), CPU)
    judge_of(small(), run(1, "gin", "edge"), CPU)
    assert len(cached(tmp_path)) == 4


def changed(dataset: Dataset) -> GraphStore:
    """With another feature of one node."""
    x = dataset.graphs.x.clone()
    x[0, 0] += 1
    return replace(dataset.graphs, x=x)


CHANGED: dict[str, Callable[[Dataset, RunConfig], tuple[Dataset, RunConfig, str]]] = {
    "split": lambda dataset, config: (dataset, replace(config, split=2), "cpu"),
    "conv": lambda dataset, config: (dataset, replace(config, conv="gcn"), "cpu"),
    "removal": lambda dataset, config: (dataset, replace(config, model="cores-edge"), "cpu"),
    "both": lambda dataset, config: (dataset, replace(config, model="cores-both"), "cpu"),
    "network": lambda dataset, config: (
        dataset,
        replace(config, network=NetworkConfig(edge_features=not config.network.edge_features)),
        "cpu",
    ),
    "device": lambda dataset, config: (dataset, config, "cuda"),
    "data": lambda dataset, config: (replace(dataset, graphs=changed(dataset)), config, "cpu"),
    "standardised": lambda dataset, config: (replace(dataset, continuous=(0,)), config, "cpu"),
    "clipped": lambda dataset, config: (replace(dataset, clipped=(0,)), config, "cpu"),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_judges_that_one_setting_tells_apart_are_kept_in_files_of_their_own(
    small: Callable[..., Dataset],
    change: Callable[[Dataset, RunConfig], tuple[Dataset, RunConfig, str]],
) -> None:
    one = judges._cached(small(), run(), CPU)
    assert judges._cached(small(), run(), CPU) == one
    dataset, config, device = change(small(), run())
    assert judges._cached(dataset, config, torch.device(device)) != one


@pytest.mark.parametrize(
    "name",
    [
        "EPOCHS",
        "BATCH_SIZE",
        "LEARNING_RATE",
        "FINAL_RATE",
        "WEIGHT_DECAY",
        "SEED",
        "RECIPE",
        "MANY_GRAPHS",
        "FEWEST_EPOCHS",
    ],
)
def test_a_judge_of_another_recipe_is_kept_in_a_file_of_its_own(
    name: str, small: Callable[..., Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = judges._cached(small(), run(), CPU)
    monkeypatch.setattr(judges, name, 2 * getattr(judges, name))
    assert judges._cached(small(), run(), CPU) != one


def test_making_a_judge_does_not_disturb_the_random_numbers_of_a_run(
    small: Callable[..., Dataset],
) -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    judge_of(small(), run(), CPU)
    assert torch.equal(torch.rand(4), expected)


def test_a_damaged_judge_is_trained_anew(small: Callable[..., Dataset], tmp_path: Path) -> None:
    judge_of(small(), run(), CPU)
    (path,) = cached(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(b"not a judge")
    judge_of(small(), run(), CPU)
    assert path.read_bytes() == whole


def test_a_kept_judge_of_another_shape_is_trained_anew(
    small: Callable[..., Dataset], tmp_path: Path
) -> None:
    judge_of(small(), run(), CPU)
    (path,) = cached(tmp_path)
    whole = path.read_bytes()
    weights = load_state(path)["classifier"]
    others = ({"head.weight": torch.ones(3, 3)}, {"head.weight": weights["head.weight"].double()})
    for other in others:
        save_state(path, {"classifier": weights | other})
        judge_of(small(), run(), CPU)
        assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_does_not_cost_the_run(
    small: Callable[..., Dataset], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="the judge is not kept"):
        judge_of(small(), run(), CPU)


def test_a_cache_that_cannot_be_read_does_not_cost_the_run(
    small: Callable[..., Dataset], tmp_path: Path
) -> None:
    dataset = small()
    judge_of(dataset, run(), CPU)
    (path,) = cached(tmp_path)
    path.parent.chmod(0)
    user = os.geteuid()
    if user == 0:  # whom nothing is forbidden
        os.seteuid(65534)
    try:
        judges.is_kept(dataset, run(), CPU)
        with pytest.warns(UserWarning, match="the judge is not kept for the next run: cannot"):
            judge = judge_of(dataset, run(), CPU)
    finally:
        os.seteuid(user)
        path.parent.chmod(0o700)
    again = load_state(path)["classifier"]
    assert torch.equal(judge.classifier.state_dict()["head.weight"], again["head.weight"])


def test_a_user_without_a_home_has_a_judge(
    small: Callable[..., Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(user: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {user}")

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert not judges.is_kept(small(), run(), CPU)
    with pytest.warns(UserWarning, match=r"the judge is not kept .*: there is no home folder"):
        judge_of(small(), run(), CPU)


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_it_looks_at_the_subgraphs_at_the_full_graphs_and_at_random_ones(
    small: Callable[..., Dataset], removal: str
) -> None:
    dataset = small()
    graphs = dataset.graphs
    judge = judge_of(dataset, run(1, "gin", removal), CPU)
    everything = Predictions(
        probs=torch.full((12, 2), 0.5),
        node_ratio=torch.ones(12),
        edge_ratio=torch.ones(12),
        removed_nodes=torch.zeros(graphs.x.size(0), dtype=torch.bool),
        removed_edges=torch.zeros(graphs.edge_index.size(1), dtype=torch.bool),
        node_scores=None,
        edge_scores=None,
    )
    metrics = judge.metrics(everything, graphs)
    assert metrics["judge_accuracy"] == metrics["judge_full_accuracy"]
    assert metrics["judge_balanced_accuracy"] == metrics["judge_full_balanced_accuracy"]
    probs = predict_proba(judge.classifier, graphs.batches(12))
    assert metrics["judge_full_balanced_accuracy"] == balanced_accuracy(probs, graphs.y)
    # where all is kept, a random mask of nodes or of edges is the whole graph as well
    if removal != "both":
        assert metrics["judge_random_accuracy"] == metrics["judge_full_accuracy"]
        assert metrics["judge_random_balanced_accuracy"] == metrics["judge_balanced_accuracy"]
    assert judge.metrics(everything, graphs) == metrics  # seeded


def test_a_judge_reports_the_epochs_of_its_training_and_none_from_the_cache(
    small: Callable[..., Dataset],
) -> None:
    reported: list[int] = []

    def report(epoch: int, metrics: dict[str, float]) -> None:
        assert metrics["loss"] > 0
        reported.append(epoch)

    assert not judges.is_kept(small(), run(), CPU)
    judge_of(small(), run(), CPU, report)
    assert reported == [1, 2]
    assert judges.is_kept(small(), run(), CPU)
    judge_of(small(), run(), CPU, report)
    assert reported == [1, 2]


def test_a_judge_has_the_test_part_of_its_run(small: Callable[..., Dataset]) -> None:
    """Otherwise it would have learnt from graphs that it judges."""
    dataset = replace(small(), graphs=twice(small()))
    for parts in (PartsConfig(folds=2), PartsConfig(policy=0.4, selection=0.0, folds=3)):
        theirs = split_dataset(dataset, 2, parts)
        own = judges.judge_parts(dataset, run(2, "gin", "node", parts))
        assert torch.equal(theirs.test, own.test)


def test_a_judge_of_a_scaffold_split_has_the_scaffolds_of_its_run(
    small: Callable[..., Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "scaffold_groups", lambda smiles: np.arange(len(smiles)) // 2)
    dataset = replace(small(), graphs=twice(small()), smiles=("C",) * 24)
    parts = PartsConfig(kind="scaffold", policy=0.3)
    theirs = split_dataset(dataset, 2, parts)
    assert torch.equal(judges.judge_parts(dataset, run(2, parts=parts)).test, theirs.test)
    random = split_dataset(dataset, 2, PartsConfig())
    assert not torch.equal(random.test, theirs.test)


def test_judges_of_other_parts_are_others(small: Callable[..., Dataset], tmp_path: Path) -> None:
    judge_of(small(), run(), CPU)
    judge_of(small(), run(1, "gin", "node", PartsConfig(policy=0.3)), CPU)  # shares are its own
    assert len(cached(tmp_path)) == 1
    dataset = small()
    graphs = 12
    judge_of(
        replace(dataset, graphs=twice(dataset)), run(1, "gin", "node", PartsConfig(folds=2)), CPU
    )
    assert len(cached(tmp_path)) == 2
    given = ("train",) * (2 * graphs - 4) + ("test",) * 4
    judge_of(replace(dataset, graphs=twice(dataset), given_parts=given), run(), CPU)
    assert len(cached(tmp_path)) == 3


def twice(dataset: Dataset) -> GraphStore:
    """Enough graphs for folds."""
    return dataset.graphs.subset(torch.arange(12).repeat(2))


def test_a_judge_of_many_graphs_trains_for_fewer_epochs(
    small: Callable[..., Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its progress counts in the usual number, which is shown before the graphs are known."""
    monkeypatch.setattr(judges, "EPOCHS", 10)
    monkeypatch.setattr(judges, "MANY_GRAPHS", 4)
    monkeypatch.setattr(judges, "FEWEST_EPOCHS", 2)
    reported: list[int] = []
    judge_of(small(), run(), CPU, lambda epoch, metrics: reported.append(epoch))
    assert 2 <= len(reported) < 10
    assert reported[-1] == 10


@pytest.mark.parametrize(("many", "sizes", "epochs"), [(6, [1] * 6, 4), (4, [4, 2], 2)])
def test_a_judge_is_trained_by_its_recipe(
    small: Callable[..., Dataset],
    monkeypatch: pytest.MonkeyPatch,
    many: int,
    sizes: list[int],
    epochs: int,
) -> None:
    """Its rate falls along a cosine; with many graphs its batches are four times as large."""
    recipe = {"EPOCHS": 4, "BATCH_SIZE": 1, "MANY_GRAPHS": many, "FEWEST_EPOCHS": 1}
    for name, value in recipe.items():
        monkeypatch.setattr(judges, name, value)
    seen: list[tuple[float, float, list[int]]] = []

    def note(step: Step, batches: Iterable[Batch]) -> float:
        group = step.optimizer.param_groups[0]
        counts = [batch.num_graphs for batch in batches]
        seen.append((group["lr"], group["weight_decay"], counts))
        return 0.5

    monkeypatch.setattr(judges, "fit_epoch", note)
    reported: list[tuple[int, float]] = []

    def report(epoch: int, metrics: dict[str, float]) -> None:
        reported.append((epoch, metrics["loss"]))

    judge_of(small(), run(), CPU, report)
    assert [counts for _, _, counts in seen] == [sizes] * epochs
    assert {decay for _, decay, _ in seen} == {judges.WEIGHT_DECAY}
    heights = [(1 + math.cos(math.pi * epoch / epochs)) / 2 for epoch in range(epochs)]
    shares = [judges.FINAL_RATE + (1 - judges.FINAL_RATE) * height for height in heights]
    assert [rate / judges.LEARNING_RATE for rate, _, _ in seen] == pytest.approx(shares)
    assert reported == [(4 * epoch // epochs, 0.5) for epoch in range(1, epochs + 1)]


def test_a_judge_scales_features_by_the_graphs_that_it_learns_from(
    small: Callable[..., Dataset],
) -> None:
    dataset = small()
    learnt = dataset.graphs.subset(judges._learnt(judges.judge_parts(dataset, run())))
    scaler = judge_of(dataset, run(), CPU).classifier.scaler
    column = dataset.continuous[0]
    assert scaler.mean[column] == pytest.approx(float(learnt.x[:, column].mean()))
    assert scaler.mean[column] != pytest.approx(float(dataset.graphs.x[:, column].mean()))


@pytest.mark.parametrize(("removal", "known"), [("node", False), ("edge", True), ("both", True)])
def test_undirected_edges_are_computed_once_where_they_are_removed(
    removal: str,
    known: bool,
    small: Callable[..., Dataset],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not for every batch of every epoch, and not at all where only nodes are removed."""
    seen: list[bool] = []

    def note(graphs: GraphStore, *_: object) -> list[Batch]:
        seen.append("pair_index" in graphs.batch(torch.arange(2)))
        return list(graphs.batches(4))

    monkeypatch.setattr(judges, "masked_batches", note)
    judge_of(small(), run(removal=removal), CPU)
    assert seen == [known] * 2


def test_a_judge_is_the_same_whatever_was_drawn_before(small: Callable[..., Dataset]) -> None:
    parts = judges.judge_parts(small(), run())
    weights = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        judge = judges.train_judge(small(), parts, run(), CPU)
        weights.append(judge.classifier.state_dict())
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


def test_a_judge_measures_random_masks_by_its_own_random_numbers(
    small: Callable[..., Dataset],
) -> None:
    dataset = small()
    graphs = dataset.graphs
    judge = judge_of(dataset, run(), CPU)
    half = torch.full((12,), 0.5)
    kept = torch.zeros(graphs.x.size(0), dtype=torch.bool)
    no_edges = torch.zeros(graphs.edge_index.size(1), dtype=torch.bool)
    predictions = Predictions(torch.full((12, 2), 0.5), half, half, kept, no_edges, None, None)
    masks = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        masks.append(judge.metrics(predictions, graphs))
    assert masks[0] == masks[1]
    assert set(masks[0]) == {
        f"judge_{seen}{name}"
        for seen in ("", "full_", "random_")
        for name in ("accuracy", "balanced_accuracy")
    }
    assert all(0 <= value <= 1 for value in masks[0].values())


def test_a_model_that_removes_nothing_has_no_judge(small: Callable[..., Dataset]) -> None:
    with pytest.raises(ValueError, match="gnn removes nothing to judge"):
        judge_of(small(), RunConfig(model="gnn"), CPU)


def test_a_judge_reads_edge_features_where_the_model_does(small: Callable[..., Dataset]) -> None:
    names = []
    for reads in (True, False):
        config = replace(run(), network=NetworkConfig(edge_features=reads))
        judge = judge_of(small(), config, CPU)
        names.append(set(judge.classifier.state_dict()))
    assert names[0] != names[1]
