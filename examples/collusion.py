"""Collusion: a classifier trained on the policy's subgraphs, and one trained on random masks.

With ``mix`` 0 the classifier is trained on the policy's subgraphs and rewards it, as in the paper:
the two can agree on a private code. By default it is trained on random masks, and others reward the
policy. Both rows are measured on the same test graphs, whose motif is known; docs/honesty.md says
how to read them.

    python examples/collusion.py            # some ten minutes on one core
    python examples/collusion.py --quick    # a minute, too short to convince anybody
"""

import argparse
from typing import Any

from cores import Cores, load_dataset

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
    "policy's subgraphs (mix 0)": {
        "classifier_data": {"mix": 0.0, "warm_up": 0.05},
        "reward": {"referees": 0},
    },
    "random masks (default)": {},
}


def main() -> None:
    """Train both and print their metrics side by side."""
    parser = argparse.ArgumentParser(description="Collusion of policy and classifier, shown.")
    parser.add_argument("--quick", action="store_true", help="a few epochs on a few graphs")
    parser.add_argument("--dataset", default="motifs", help="motifs (generated) or BA_2Motifs")
    options = parser.parse_args()
    graphs = load_dataset(options.dataset)
    graphs = graphs[:100] if options.quick else graphs
    print(f"| classifier trained on | {' | '.join(COLUMNS.values())} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for name, settings in TRAINED_ON.items():
        model = Cores(epochs=10 if options.quick else None, settings=settings).fit(graphs)
        values = [model.metrics_[column] for column in COLUMNS]
        shown = ["–" if value is None else f"{value:.2f}" for value in values]
        print(f"| {name} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
