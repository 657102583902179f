"""Settings that have been renamed: what they were called when they were introduced."""

INTRODUCED_AS = {
    "classifier_data.mix": "diet.mix",
    "classifier_data.warm_up": "diet.warm_up",
    "classifier_data.distillation": "diet.distilled",
    "ppo.initial_removal": "ppo.start",
    "ppo.min_probability": "ppo.floor",
    "ppo.ema_decay": "ppo.averaging",
}
"""The first name of a setting, by its name today. A run's key goes by the first."""
