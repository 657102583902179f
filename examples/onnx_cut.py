"""The smallest sufficient prefix of the policy's order, with ONNX files and no torch.

cores train --dataset motifs --model cores-node --out runs/motifs
cores export runs/motifs
python examples/onnx_cut.py runs/motifs
"""

import json
import sys
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession

run = Path(sys.argv[1])
committee, policy = (InferenceSession(run / f"{name}.onnx") for name in ("committee", "policy"))
known = committee.get_modelmeta().custom_metadata_map
names, tau = json.loads(known["class_names"]), json.loads(known["sufficiency"])

# A house on a path of six nodes; any graph with the model's node features.
pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 0), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)]
x = np.ones((10, len(json.loads(known["feature_names"]))), np.float32)
edges = np.array(pairs + [pair[::-1] for pair in pairs]).T


def asked(parts):
    """The committee's probabilities for parts of the graph, all in one batch."""
    ends, first, rows = [], 0, [np.sort(part) for part in parts]
    for part in rows:
        inside = edges[:, np.isin(edges, part).all(axis=0)]
        ends.append(np.searchsorted(part, inside) + first)
        first += len(part)
    batch = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
    graphs = {"x": x[np.concatenate(rows)], "edge_index": np.hstack(ends), "batch": batch}
    return np.exp(committee.run(["log_probs"], graphs)[0])


graph = {"x": x, "edge_index": edges, "batch": np.zeros(len(x), np.int64)}
order = np.argsort(-policy.run(["node_score"], graph)[0], kind="stable")  # the best first
probs = asked([order[:kept] for kept in range(1, len(order) + 1)])  # of every prefix
predicted = probs[-1].argmax()  # of the whole graph
wanted = min(tau, probs[-1, predicted])  # a part need not be surer than the whole graph
enough = (probs.argmax(axis=1) == predicted) & (probs[:, predicted] >= wanted)
part = order[: enough.argmax() + 1]
print(f"{names[predicted]} with {probs[-1, predicted]:.2f}; ", end="")
print(f"from the nodes {sorted(part.tolist())} alone with {probs[len(part) - 1, predicted]:.2f}")
