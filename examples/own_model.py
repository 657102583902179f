"""A model of one's own, registered and compared with the plain GNN and CORES."""

from pathlib import Path

from torch import nn

from cores import GraphModel, register_model
from cores.runs.compare import compare, comparison_table


class NodeCount(GraphModel):
    """Knows the number of nodes of a graph, and nothing else."""

    def __init__(self, dims, network, conv):
        super().__init__(dims)
        self.head = nn.Linear(1, dims.num_classes)

    def logits(self, batch):
        return self.head(batch.ptr.diff()[:, None].float() / 100)


register_model("node-count", NodeCount, title="Node count")
if __name__ == "__main__":  # worker processes import this file, too
    models = ["gnn", "node-count", "cores-node"]
    rows = compare("motifs", models, Path("runs/own-model"), splits=(1, 2), workers=2)
    print(comparison_table(rows).markdown())
