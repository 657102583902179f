"""Datasets, splits, and graphs as flat tensors."""
