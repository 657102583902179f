"""The models CORES is compared with, each from its own paper."""
