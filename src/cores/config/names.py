"""Settings that have been renamed: what they were called when they were introduced."""

INTRODUCED_AS: dict[str, str] = {}
"""The first name of a setting, by its name today; a run's key goes by the first."""
