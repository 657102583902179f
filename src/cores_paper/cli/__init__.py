"""The commands that this package brings to ``cores``."""
