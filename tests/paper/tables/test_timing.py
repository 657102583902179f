"""Seconds: measured in turns, kept in a file, shown beside the paper's."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cores.config import RunConfig
from cores.config.models import ModelSpec
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.errors import UserError
from cores_paper.tables import timing
from cores_paper.tables.timing import time_models
from cores_paper.tables.timing_rows import Timing, merge_timings, read_timings, timing_table


def test_predictions_are_timed_as_ratios_to_the_plain_gnn() -> None:
    device = torch.device("cpu")
    found = time_models("inference", "motifs", ["mlp", "gnn"], repeats=1, device=device)
    assert [(measured.model, measured.batch_size) for measured in found] == [
        ("gnn", 1),
        ("mlp", 1),
        ("gnn", 128),
        ("mlp", 128),
    ]
    assert found[0].ratio == found[2].ratio == 1
    assert found[1].ratio == pytest.approx(found[1].seconds / found[0].seconds)
    assert all(measured.seconds > 0 for measured in found)


def test_a_ratio_is_taken_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    # In the second round the machine is ten times slower.
    seconds = {"gnn": [1.0, 10.0, 2.0], "mlp": [3.0, 30.0, 1.0]}

    class Clock:
        WARM_UP = 0

        def __init__(self, config: RunConfig) -> None:
            self.rounds = iter(seconds[config.model])

        def __call__(self) -> float:
            return next(self.rounds)

    monkeypatch.setattr(timing, "_clock", lambda action, config, *rest: Clock(config))
    device = torch.device("cpu")
    found = time_models("inference", "motifs", ["mlp"], repeats=3, device=device)
    assert [(measured.seconds, measured.ratio) for measured in found[:2]] == [
        (2.0, 1.0),
        (3.0, 3.0),
    ]


@pytest.mark.data
def test_an_epoch_of_every_kind_of_model_is_timed(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "MAX_GRAPHS", 48)
    found = time_models(
        "train",
        "MUTAG",
        ["gpool", "cores-node"],
        repeats=1,
        data_root=data_root,
        device=torch.device("cpu"),
    )
    single, batches = found[:3], found[3:]
    assert [measured.model for measured in single] == ["gnn", "gpool", "cores-node"]
    assert {measured.batch_size for measured in batches} == {32}
    assert all(measured.seconds > 0 and measured.repeats == 1 for measured in found)


def test_a_long_epoch_is_timed_on_a_part_of_the_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Dataset] = []

    class Clock:
        WARM_UP = 0

        def __call__(self) -> float:
            return 0.5

    def clock(action: str, config: RunConfig, data: Dataset, *rest: object) -> Clock:
        seen.append(data)
        return Clock()

    monkeypatch.setattr(timing, "_clock", clock)
    found = time_models("train", "motifs", [], repeats=1, device=torch.device("cpu"))
    assert {len(data) for data in seen} == {timing.MAX_GRAPHS}
    assert torch.bincount(seen[0].graphs.y).tolist() == [128, 128]
    assert {measured.seconds for measured in found} == {0.5 * 1000 / timing.MAX_GRAPHS}
    assert {measured.ratio for measured in found} == {1}


@pytest.mark.parametrize(("scale", "rolled_out"), [(1.0, 320), (16.0, 20), (1000.0, 1)])
def test_a_part_of_the_graphs_gets_a_part_of_the_roll_outs(scale: float, rolled_out: int) -> None:
    config, data = RunConfig(model="cores-node"), load_dataset("motifs")
    clock = timing._clock("train", config, data, 1, torch.device("cpu"), scale)
    assert clock.config.ppo.env_steps == rolled_out


def test_a_file_of_seconds_keeps_the_latest_and_names_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    old = Timing("MUTAG", "gnn", "train", 1, 0.5, 1.0, 5, "cpu", "abc")
    new = Timing("MUTAG", "gnn", "train", 1, 0.25, 1.0, 5, "cpu", "abc")
    other = Timing("BZR", "gnn", "train", 1, 0.1, 1.0, 5, "cpu", "abc")
    merge_timings(path, [old])
    assert merge_timings(path, [new, other]) == [other, new]
    assert read_timings(path) == [other, new]
    quick = replace(new, repeats=1)
    elsewhere = replace(new, machine="NVIDIA H200")
    assert {new, quick, elsewhere} <= set(merge_timings(path, [quick, elsewhere]))
    merge_timings(path, [])
    good = path.read_text()
    for bad in (
        good.replace("0.25,1,5,cpu", "fast,1,5,cpu"),
        good.replace("train", "rest"),
        good.replace("0.25,1,5,cpu", "nan,1,5,cpu"),
        good.replace("0.25,1,5,cpu", "0.25,inf,5,cpu"),
        good.replace("dataset", "x" * 200_000),
        good.replace("abc", "x" * 200_000),
        good.replace(",cpu,abc", ""),
        good.replace(",abc", ",abc,abc"),
    ):
        path.write_text(bad)
        with pytest.raises(UserError, match=r"times.csv: line \d is not a measured time"):
            read_timings(path)
    assert read_timings(tmp_path / "none.csv") == []


def test_the_table_shows_the_papers_ratio_beside_ours() -> None:
    rows = [
        Timing("MUTAG", "gnn", "inference", 1, 0.002, 1.0, 5, "cpu", ""),
        Timing("MUTAG", "cores-node", "inference", 1, 0.006, 3.0, 5, "cpu", ""),
        Timing("MUTAG", "gnn", "inference", 128, 0.02, 1.0, 5, "cpu", ""),
        Timing("MUTAG", "cores-node", "inference", 128, 0.03, 1.5, 5, "cpu", ""),
    ]
    lines = timing_table(rows, "inference").markdown().splitlines()
    assert lines[0] == "| dataset | graphs at once | GNN, ms | CORES nodes |"
    assert lines[2].startswith("| MUTAG | 1 | 2 | 3.00 (1")
    assert lines[3] == "| MUTAG | 128 | 20 | 1.50 |"


def test_a_registered_model_stands_before_the_policies_by_its_title(
    registered_model: ModelSpec,
) -> None:
    rows = [
        Timing("MUTAG", model, "inference", 1, 0.002, 1.0, 5, "cpu", "")
        for model in ("another-script's", registered_model.name, "cores-both", "gnn")
    ]
    head = ["dataset", "graphs at once", "GNN, ms", "Own & Co", "CORES both", "another-script's"]
    assert timing_table(rows, "inference").head == head
