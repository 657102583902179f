"""Details of graphs as few characters as will do: a page of a thousand proteins holds them all."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

ABSENT = 0xFFFF
"""Stands for a number that is not there."""
THOUSAND = 1000
"""Probabilities have three digits."""


def packed_details(details: dict[str, Any]) -> dict[str, Any]:
    """Columns in place of rows; ``report.js`` makes the rows of them again.

    >>> rows = [[0, "C", 0.5, 1], [1, "C", 0.25, 0]]
    >>> found = packed_details({"nodes": rows, "points": [(3, 4), None]})
    >>> found["names"], found["is"] == number_string([0, 0]), found["kept"]
    (['C'], True, 'AQ==')
    >>> found["scores"] == number_string([500, 250])
    True
    """
    numbers, names, scores, kept, *effects = zip(*details["nodes"], strict=True)
    words = list(dict.fromkeys(names))
    place = {word: at for at, word in enumerate(words)}
    packed: dict[str, Any] = {
        "names": words,
        "is": number_string([place[name] for name in names]),
        "scores": _score_string(scores),
        "kept": bit_string(kept),
        "points": number_string(
            [value for point in details["points"] for value in point or (ABSENT, ABSENT)]
        ),
    }
    if list(numbers) != list(range(len(numbers))):
        packed["numbers"] = list(numbers)
    if effects:
        packed["effects"] = effect_string(*effects)
    if "edges" in details:
        one, other, scores, kept, *effects = zip(*details["edges"], strict=True)
        if effects:
            packed["edgeEffects"] = effect_string(*effects)
        packed["edges"] = [
            number_string(one), number_string(other), _score_string(scores), bit_string(kept)
        ]  # fmt: skip
    return packed | {name: details[name] for name in ("dial", "ends") if name in details}


def number_string(values: Sequence[int]) -> str:
    """Whole numbers as base64, of as many bytes each as the first character says.

    >>> number_string([1, 2]), number_string([70_000])
    ('2AQACAA==', '4cBEBAA==')
    """
    width = 2 if max(values, default=0) <= ABSENT else 4
    return f"{width}{b64encode(np.asarray(values, dtype=f'<u{width}').tobytes()).decode()}"


def effect_string(values: Sequence[float]) -> tuple[float, str]:
    """Numbers of either sign as the largest of them, and each in thousandths of that, plus 1000.

    >>> effect_string([0.5, -0.25]) == (0.5, number_string([2000, 500]))
    True
    """
    most = max((abs(value) for value in values), default=0.0) or 1.0
    return most, number_string([round(THOUSAND * value / most) + THOUSAND for value in values])


def bit_string(values: Sequence[Any]) -> str:
    """Truth values as base64, eight to a byte, the first in the lowest bit.

    >>> bit_string([True, False, False, True]), bit_string([])
    ('CQ==', '')
    """
    packed = np.packbits(np.asarray(values, dtype=bool), bitorder="little")
    return b64encode(packed.tobytes()).decode()


def _score_string(scores: Sequence[float | None]) -> str | None:
    """Probabilities in thousandths; None for a model that does not choose."""
    known = [round(THOUSAND * score) for score in scores if score is not None]
    return number_string(known) if known else None
