"""Give the rows of a results file of version 0.1.0 the keys of version 0.2.0.

    python tools/rekey.py results/runs.csv

Version 0.1.0 hashed every setting under its name in the code. A row is read back as the
configuration that made it; unless that configuration has exactly the row's old key, nothing is
written.
"""

import csv
import hashlib
import io
import json
import sys
from pathlib import Path

from cores.config import RunConfig
from cores.config.presets import preset_config


def old_key(config: RunConfig) -> str:
    """The key of version 0.1.0."""
    text = json.dumps(config.settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def configuration(row: dict[str, str]) -> RunConfig:
    """The configuration of a row, found by its old key."""
    chosen = {"split": int(row["split"]), "seed": int(row["seed"])}
    steered = {"lam": float(row["lam"] or 0), "desired_ratio": float(row["desired_ratio"] or 0)}
    for changes in (chosen, {**chosen, "reward": steered}):
        config = preset_config(row["dataset"], row["model"], row["conv"], row["preset"], changes)
        if old_key(config) == row["key"]:
            return config
    sys.exit(f"no configuration of version 0.1.0 has the key {row['key']}; nothing is written")


def main(path: Path) -> None:
    """Replace the keys of a file."""
    lines = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    rows = list(lines)
    for row in rows:
        row["key"] = configuration(row).key
    if len({row["key"] for row in rows}) < len(rows):
        sys.exit("two rows would have the same key; nothing is written")
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, lines.fieldnames or (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(buffer.getvalue(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
