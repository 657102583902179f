"""Collusion: the paper's diet for the classifier, and ours, on BA-2Motifs.

With ``mix`` 0 the classifier learns from the policy's subgraphs and rewards it: the two can agree
on a private code. With the default it learns from random masks and others reward the policy. Both
rows are measured on the same test graphs, whose motif is known; docs/honesty.md says how to read
them.

    python examples/collusion.py            # a few minutes on one core
    python examples/collusion.py --quick    # a minute, too short to convince anybody
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from cores.config import RunConfig, from_dict
from cores.runs.run import train_run

COLUMNS = {
    "accuracy": "accuracy",
    "node_ratio": "kept",
    "judge_accuracy": "judge",
    "judge_random_accuracy": "judge, random",
    "full_accuracy": "whole graphs",
    "node_recall": "recall",
    "node_precision": "precision",
    "node_auc": "AUC",
}
DIETS: dict[str, dict[str, Any]] = {
    "policy's subgraphs (mix 0)": {
        "diet": {"mix": 0.0, "warm_up": 0.05},
        "reward": {"referees": 0},
    },
    "random masks (default)": {},
}


def main() -> None:
    """Train both and print their figures side by side."""
    parser = argparse.ArgumentParser(description="Two diets for the classifier, on BA-2Motifs.")
    parser.add_argument("--quick", action="store_true", help="a few epochs only")
    parser.add_argument("--dataset", default="motifs", help="motifs (generated) or BA_2Motifs")
    options = parser.parse_args()
    epochs = {"training": {"epochs": 10}} if options.quick else {}
    print(f"| classifier learns from | {' | '.join(COLUMNS.values())} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for diet, changes in DIETS.items():
        settings = {"dataset": options.dataset, "model": "cores-node", **changes, **epochs}
        with tempfile.TemporaryDirectory() as folder:
            metrics = train_run(from_dict(RunConfig, settings), Path(folder) / "run")
        figures = ["–" if metrics[name] is None else f"{metrics[name]:.2f}" for name in COLUMNS]
        print(f"| {diet} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
