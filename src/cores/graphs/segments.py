"""Segments: items laid end to end and owned by graphs, as pointers, counts and owners.

Segment i owns the items ``ptr[i]:ptr[i + 1]``; ``owner`` names the segment of every item.
"""

import torch
from jaxtyping import Int
from torch import Tensor


def pointers(counts: Int[Tensor, " segments"]) -> Int[Tensor, " segments_plus_1"]:
    """Offsets of segments with these counts, and the end of the last.

    >>> pointers(torch.tensor([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def owners(counts: Int[Tensor, " segments"], total: int | None = None) -> Int[Tensor, " items"]:
    """The segment of every item; with ``total``, their number, no device is asked for it.

    >>> owners(torch.tensor([2, 0, 3])).tolist()
    [0, 0, 2, 2, 2]
    """
    segments = torch.arange(len(counts), device=counts.device)
    return segments.repeat_interleave(counts, output_size=total)


def place_within(owner: Int[Tensor, " items"], segments: int) -> Int[Tensor, " items"]:
    """Position of every item in its segment; items are sorted by segment.

    >>> place_within(torch.tensor([0, 0, 2, 2, 2]), 3).tolist()
    [0, 1, 0, 1, 2]
    """
    first = pointers(torch.bincount(owner, minlength=segments))[:-1]
    return torch.arange(len(owner), device=owner.device) - first[owner]


def gathered(
    ptr: Int[Tensor, " segments_plus_1"],
    chosen: Int[Tensor, " chosen"],
    device: torch.device,
) -> tuple[Int[Tensor, " rows"], Int[Tensor, " rows"], Int[Tensor, " chosen_plus_1"]]:
    """The items of the chosen segments, one segment after the other, on a device.

    Returns the items, the position in ``chosen`` of each one's segment, and the new pointers.
    ``ptr`` and ``chosen`` live where their sizes are known without asking, on the CPU.

    >>> cpu = torch.device("cpu")
    >>> rows, owner, ptr = gathered(torch.tensor([0, 2, 5, 6]), torch.tensor([2, 0]), cpu)
    >>> rows.tolist(), owner.tolist(), ptr.tolist()
    ([5, 0, 1], [0, 1, 1], [0, 1, 3])
    """
    first = ptr[chosen]
    counts = ptr[chosen + 1] - first
    new = pointers(counts)
    total = int(new[-1])
    owner = owners(counts.to(device), total)
    shift = (first - new[:-1]).to(device)
    return torch.arange(total, device=device) + shift[owner], owner, new.to(device)
