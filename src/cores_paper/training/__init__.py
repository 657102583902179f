"""The training of the published presets."""
