"""Clipping and standardisation of node features: the first thing a network does."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class FeatureScaler(nn.Module):
    """Clips and standardises node features; the identity until it is fitted."""

    low: Float[Tensor, " features"]
    high: Float[Tensor, " features"]
    mean: Float[Tensor, " features"]
    std: Float[Tensor, " features"]

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("low", torch.full((num_features,), -torch.inf))
        self.register_buffer("high", torch.full((num_features,), torch.inf))
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("std", torch.ones(num_features))

    def fit(
        self,
        x: Float[Tensor, "nodes features"],
        continuous: tuple[int, ...],
        clipped: tuple[int, ...],
    ) -> "FeatureScaler":
        """Learn bounds of the clipped columns, then mean and deviation of the continuous ones."""
        x = x.cpu()  # where sums have a fixed order
        for column in clipped:
            bounds = torch.quantile(x[:, column].double(), torch.tensor([0.001, 0.999]).double())
            self.low[column], self.high[column] = bounds
        inside = x.clamp(self.low.cpu(), self.high.cpu())
        for column in continuous:
            deviation, mean = torch.std_mean(inside[:, column].double(), correction=0)
            self.mean[column] = mean
            self.std[column] = deviation if deviation > 0 else 1.0
        return self

    def forward(self, x: Float[Tensor, "nodes features"]) -> Float[Tensor, "nodes features"]:
        """Scaled features."""
        return (x.clamp(self.low, self.high) - self.mean) / self.std
