"""networkx graphs with text labels: rings against trees, decided by the ring."""

import networkx as nx

from cores import Cores

graphs, labels = [], []
for seed in range(100):
    tree = nx.random_labeled_tree(12, seed=seed)
    ring = nx.cycle_graph(6) if seed % 2 else nx.path_graph(6)
    graphs.append(nx.disjoint_union(tree, ring))
    labels.append("ring" if seed % 2 else "no ring")
model = Cores(removal="edge", epochs=40).fit(graphs, labels)
print(model.classes_, model.predict(graphs[:4]), model.explain(graphs[1:2])[0].kept_edges)
