"""Early stopping keeps the best epoch."""

import torch

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
