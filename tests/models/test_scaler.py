"""The scaler: continuous columns standardised, outliers clipped, the rest as it was."""

import pytest
import torch

from cores.models.scaler import FeatureScaler


def test_a_scaler_changes_nothing_until_it_is_fitted() -> None:
    x = torch.tensor([[-1e9, 0.0], [3.0, 1e9]])
    assert torch.equal(FeatureScaler(2)(x), x)


def test_scaler_standardises_continuous_columns_and_leaves_the_rest() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
    scaled = FeatureScaler(2).fit(x, continuous=(0,), clipped=())(x)
    assert scaled[:, 0].mean().item() == pytest.approx(0, abs=1e-6)
    assert scaled[:, 0].std(correction=0).item() == pytest.approx(1, abs=1e-6)
    assert torch.equal(scaled[:, 1], x[:, 1])


def test_scaler_clips_outliers_to_the_fitted_quantiles() -> None:
    x = torch.arange(1001.0)[:, None]
    scaler = FeatureScaler(1).fit(x, continuous=(), clipped=(0,))
    assert scaler(torch.tensor([[-50.0], [500.0], [9e9]])).flatten().tolist() == [1, 500, 999]


def test_scaler_survives_a_constant_column() -> None:
    x = torch.full((5, 1), 3.0)
    assert FeatureScaler(1).fit(x, continuous=(0,), clipped=())(x).flatten().tolist() == [0] * 5
