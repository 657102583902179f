"""scikit-learn's cross-validation over an array of graphs."""

import numpy as np
from sklearn.model_selection import cross_val_score

from cores import Cores, load_dataset

dataset = load_dataset("motifs")[:120]
graphs = np.empty(len(dataset), dtype=object)
graphs[:] = list(dataset)
labels = dataset.graphs.y.numpy()
model = Cores(epochs=12, judge=False, progress=False)
scores = cross_val_score(model, graphs, labels, cv=3)
print(f"{scores.mean():.2f} ± {scores.std():.2f}")
