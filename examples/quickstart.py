"""PyG graphs in; predictions, calibrated sets and kept subgraphs out."""

from cores import Cores, load_dataset

graphs = list(load_dataset("motifs")[:400])  # any list of PyG Data with labels in .y
known, new = graphs[:300], graphs[300:]
model = Cores(removal="node", epochs=60).fit(known)
print(model.metrics_)  # on graphs that fit set aside: accuracy, share kept, judge, coverage
print(model.predict_set(new[:3], alpha=0.1))
explanation = model.explain(new[:1])[0]
print(explanation.prediction, explanation.kept_nodes)
explanation.visualize_graph("explanation.png")
model.save("motifs-model")
assert (Cores.load("motifs-model").predict(new) == model.predict(new)).all()
