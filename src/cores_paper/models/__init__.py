"""The models that CORES is compared with."""
