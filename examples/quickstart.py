"""PyG graphs in; predictions, calibrated sets and kept subgraphs out."""

from cores import Cores, load_dataset

graphs = list(load_dataset("motifs")[:300])  # any list of PyG Data with labels in .y
known, new = graphs[:200], graphs[200:]
model = Cores(removal="node", epochs=40).fit(known)
print(model.metrics_)  # on graphs that fit set aside: accuracy, share kept, judge, coverage
print(model.predict_set(new[:3], alpha=0.1))
explanation = model.explain(new[:1])[0]
print(explanation.prediction, explanation.kept_nodes)
explanation.visualize_graph("explanation.png")
model.save("motifs-model")
assert (Cores.load("motifs-model").predict(new) == model.predict(new)).all()
