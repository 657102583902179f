"""`cores evaluate --other`: whether runs of other seeds keep the same."""

from pathlib import Path
from typing import Any

import pytest

from cores.config.presets import preset_config
from cores.errors import UserError
from cores.runs.inputs import PredictOptions
from cores.runs.run import evaluate_run, train_run

pytestmark = pytest.mark.usefixtures("short_judge", "unchecked")


def trained(data: Path, out: Path, model: str = "cores-node", **changes: Any) -> Path:
    small = {
        "network": {"hidden_dim": 8, "num_layers": 1},
        "training": {"epochs": 2},
        "ppo": {"env_steps": 32, "samples": 2, "ppo_epochs": 1},
    }
    train_run(preset_config(str(data), model, "gin", "default", small | changes), out, device="cpu")
    return out


def test_runs_of_other_seeds_are_compared_on_the_same_test_graphs(
    molecule_file: Path, tmp_path: Path
) -> None:
    one, two, edges, split = (
        trained(molecule_file, tmp_path / "one"),
        trained(molecule_file, tmp_path / "two", seed=1),
        trained(molecule_file, tmp_path / "edges", "cores-edge"),
        trained(molecule_file, tmp_path / "split", split=2),
    )
    alone = evaluate_run(one, device="cpu")
    told = evaluate_run(one, device="cpu", others=[one, two, two])
    assert {name: told[name] for name in alone} == alone
    assert set(told) - set(alone) == {"run_overlap", "run_overlap_random"}
    assert 0 < told["run_overlap"] <= 1
    back = evaluate_run(two, device="cpu", others=[one])
    assert back["run_overlap"] == pytest.approx(told["run_overlap"])
    policys = PredictOptions(parts="policy")
    modes = evaluate_run(one, policys, device="cpu", others=[two])
    drawn = evaluate_run(one, policys, device="cpu", others=[two], sample=True)
    assert drawn["run_overlap"] == modes["run_overlap"], "of the modes"
    for others, message in (
        ([split], "another test part; compare runs of one split"),
        ([edges], "holds a cores-edge, .* a cores-node; runs are compared that remove the same"),
        ([one], "`other` names no run but"),
        ([tmp_path / "none"], "holds no run"),
    ):
        with pytest.raises(UserError, match=message):
            evaluate_run(one, device="cpu", others=others)


def test_a_run_that_removes_nothing_has_nothing_to_compare(
    molecule_file: Path, tmp_path: Path
) -> None:
    run = trained(molecule_file, tmp_path / "gnn", "gnn")
    with pytest.raises(UserError, match="a gnn removes nothing"):
        evaluate_run(run, device="cpu", others=[tmp_path / "other"])
