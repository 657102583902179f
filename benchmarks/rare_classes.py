"""Rare classes with known reasons: molecules with a benzene ring, and houses, thinned to a few.

Registers the datasets Benzene_9, Benzene_3 and Motifs_5, of which so many percent are of the rare
class, always the same ones; all graphs of the other class stay.

    for NAME in Benzene_9 Benzene_3 Motifs_5; do
        cores compare --import benchmarks/rare_classes.py --dataset $NAME \
            --models gnn,gsat,cores-node --splits 1-3 --out runs/rare/$NAME
    done
"""

from functools import partial

import torch

from cores import Dataset, load_dataset, register_dataset

RARE = {
    "Benzene_9": ("Benzene", 0.09),
    "Benzene_3": ("Benzene", 0.03),
    "Motifs_5": ("BA_2Motifs", 0.05),
}
"""Datasets by name: of which one, and the share of class 1 that is left."""


def thinned(source: str, share: float) -> Dataset:
    """The dataset with so few graphs of class 1 that they are the given share of all."""
    dataset = load_dataset(source)
    y = dataset.graphs.y
    frequent, rare = (y == 0).nonzero().flatten(), (y == 1).nonzero().flatten()
    number = round(share / (1 - share) * len(frequent))
    order = torch.randperm(len(rare), generator=torch.Generator().manual_seed(0))
    return dataset[torch.cat([frequent, rare[order[:number]]]).sort().values]


for name, (source, share) in RARE.items():
    register_dataset(name, partial(thinned, source, share))
