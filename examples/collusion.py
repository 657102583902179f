"""Collusion: a classifier trained on the policy's subgraphs, and one trained on random masks.

In Algorithm 1 as published the classifier is trained on the policy's subgraphs and rewards it: the
two can agree on a private code. By default it is trained on random masks, and others reward the
policy. Both rows are measured on the same test graphs, whose motif is known; docs/honesty.md says
how to read them.

    python examples/collusion.py            # some ten minutes on one core
    python examples/collusion.py --quick    # a minute, too short to convince anybody
"""

import argparse
from typing import Any

import cores
from cores.config import merged
from cores_paper.presets import PaperConfig, fixed_settings, paper_settings

COLUMNS = {
    "accuracy": "accuracy",
    "node_ratio": "kept",
    "judge_accuracy": "judge",
    "judge_random_accuracy": "judge, random",
    "full_accuracy": "full graphs",
    "node_recall": "recall",
    "node_precision": "precision",
    "node_auc": "AUC",
}
TRAINED_ON: dict[str, dict[str, Any]] = {
    "policy's subgraphs (Algorithm 1)": {"preset": "algorithm1"},
    "random masks (default)": {},
}


def algorithm1(model: str, dataset: str, conv: str) -> dict[str, Any]:
    """The published settings for MUTAG, with the network, the reward and the rates of our own."""
    changes = {
        "network": {"hidden_dim": 64, "gin_eps": 0.0, "gin_train_eps": False},
        "parts": {"selection": 0.1, "calibration": 0.1},
        "training": {"epochs": 330, "batch_size": 32, "learning_rate": 3e-3},
        "reward": {"lam": 0.5, "desired_ratio": 0.2},
        "ppo": {"env_steps": 320, "learning_rate": 1e-3},
        "paper": {"scale": 1.0, "critic_learning_rate": 1e-3},
    }
    return merged(paper_settings(model, "MUTAG", conv), changes)


cores.register_preset(
    "algorithm1",
    algorithm1,
    summary="Algorithm 1 as published",
    group="paper",
    own=PaperConfig,
    train="cores_paper.training.algorithm:train",
    fixed=fixed_settings(),
)


def main() -> None:
    """Train both and print their metrics side by side."""
    parser = argparse.ArgumentParser(description="Collusion of policy and classifier, shown.")
    parser.add_argument("--quick", action="store_true", help="a few epochs on a few graphs")
    parser.add_argument("--dataset", default="motifs", help="motifs (generated) or BA_2Motifs")
    options = parser.parse_args()
    graphs = cores.load_dataset(options.dataset)
    graphs = graphs[:100] if options.quick else graphs
    print(f"| classifier trained on | {' | '.join(COLUMNS.values())} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for name, settings in TRAINED_ON.items():
        model = cores.Cores(epochs=10 if options.quick else None, settings=settings).fit(graphs)
        values = [model.metrics_[column] for column in COLUMNS]
        shown = ["–" if value is None else f"{value:.2f}" for value in values]
        print(f"| {name} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
