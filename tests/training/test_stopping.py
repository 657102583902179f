"""Early stopping keeps the best epoch."""

from typing import Any

import pytest
import torch

from cores.errors import UserError
from cores.training.stopping import EarlyStopping


def test_best_weights_are_kept_and_patience_runs_out() -> None:
    layer = torch.nn.Linear(1, 1)
    stopping = EarlyStopping(layer, patience=2)
    for epoch, score in enumerate([0.5, 0.8, 0.7, 0.8], start=1):
        assert not stopping.exhausted
        torch.nn.init.constant_(layer.weight, epoch)
        stopping.step((score, 0.0), epoch)
    assert stopping.exhausted
    assert stopping.best_epoch == 2
    stopping.restore_best()
    assert layer.weight.item() == 2


def test_ties_go_to_the_second_entry() -> None:
    stopping = EarlyStopping(torch.nn.Linear(1, 1), patience=5)
    for epoch, score in enumerate([(0.8, -0.5), (0.8, -0.4), (0.8, -0.6)], start=1):
        stopping.step(score, epoch)
    assert stopping.best_epoch == 2


def test_a_better_epoch_makes_patience_start_anew() -> None:
    stopping = EarlyStopping(torch.nn.Linear(1, 1), patience=2)
    assert (stopping.best_epoch, stopping.waited) == (0, 0)
    for epoch, score in enumerate([0.5, 0.4, 0.6, 0.5], start=1):
        stopping.step((score,), epoch)
    assert not stopping.exhausted
    stopping.step((0.5,), 5)
    assert stopping.exhausted


def test_a_state_taken_and_put_back_goes_on_as_before() -> None:
    layers = [torch.nn.Linear(1, 1) for _ in range(2)]
    first, second = (EarlyStopping(layer, patience=3) for layer in layers)
    for epoch, score in enumerate([0.5, 0.8, 0.7], start=1):
        torch.nn.init.constant_(layers[0].weight, epoch)
        first.step((score, 0.0), epoch)
    second.load_state_dict({**first.state_dict(), "best_score": [0.8, 0.0]})  # as files have it
    assert second.state_dict().keys() == vars(second).keys() - {"model", "patience"}
    second.step((0.8, 0.0), 4)
    assert (second.best_epoch, second.waited, second.exhausted) == (2, 2, False)
    second.restore_best()
    assert layers[1].weight.item() == 2


def test_the_best_weights_of_another_model_are_refused_at_once() -> None:
    other = EarlyStopping(torch.nn.Linear(2, 1), patience=3)
    other.step((0.5,), 1)
    with pytest.raises(ValueError, match="a state of something else"):
        EarlyStopping(torch.nn.Linear(1, 1), patience=3).load_state_dict(other.state_dict())


@pytest.mark.parametrize("missing", [{"best_weights": {}}, {"best_score": ()}], ids=str)
def test_a_best_epoch_without_its_weights_or_its_score_is_refused(missing: dict[str, Any]) -> None:
    stopping = EarlyStopping(torch.nn.Linear(1, 1), patience=3)
    stopping.step((0.5,), 1)
    with pytest.raises(ValueError, match="an epoch without weights, or weights of no epoch"):
        stopping.load_state_dict({**stopping.state_dict(), **missing})


def test_waiting_for_a_better_epoch_than_none_is_refused() -> None:
    stopping = EarlyStopping(torch.nn.Linear(1, 1), patience=3)
    stopping.load_state_dict(stopping.state_dict())  # before the first epoch
    with pytest.raises(ValueError, match="an epoch without weights, or weights of no epoch"):
        stopping.load_state_dict({**stopping.state_dict(), "waited": 1})


def test_a_checkpoint_of_the_last_epoch_without_a_selected_one_is_told() -> None:
    """Its state is that of a run before its first selected epoch, so only the end shows it."""
    with pytest.raises(UserError, match=r"none that was selected; delete checkpoint.safetensors"):
        EarlyStopping(torch.nn.Linear(2, 2), patience=3).restore_best()
