"""Charts of a report's dial as small SVGs, with a mark that a script moves."""

from collections.abc import Sequence
from dataclasses import dataclass

from cores.explain.dial_view import DialView
from cores.explain.plotting import Chart
from cores.files.escape import html

WIDTH, HEIGHT = 400, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 22, 30
MARK = 8
"""Radius of the mark at a setting."""


def dial_charts(dial: DialView) -> list[Chart]:
    """Accuracy and set size over the kept share, a dot per setting; none without figures."""
    if not dial.figures:
        return []
    accuracy = [100 * each.accuracy for each in dial.figures]
    sizes = [each.set_size for each in dial.figures]
    full = None if dial.full_accuracy is None else 100 * dial.full_accuracy
    return [
        _chart(
            "Accuracy (%) over kept share",
            dial,
            accuracy,
            _Plane.of(accuracy, full, least=10.0, most=100.0, digits=1),
        ),
        _chart(
            "Labels in a prediction set over kept share",
            dial,
            sizes,
            _Plane.of(sizes, None, least=0.2, most=float(dial.classes), digits=2),
        ),
    ]


@dataclass(frozen=True)
class _Plane:
    """Kept shares from left to right, values from the bottom to the top."""

    low: float
    high: float
    digits: int
    level: float | None
    """What the classifier comes to on full graphs."""

    @classmethod
    def of(
        cls, values: Sequence[float], level: float | None, *, least: float, most: float, digits: int
    ) -> "_Plane":
        """With room for all, and at least so high: chance alone makes such a difference.

        No axis tells of what cannot be: less than nothing, or more than ``most``.
        """
        drawn = [*values, *([] if level is None else [level])]
        middle = (min(drawn) + max(drawn)) / 2
        half = max(0.55 * (max(drawn) - min(drawn)), least / 2)
        high = min(middle + half, most)
        low = max(0.0, min(middle - half, high - least))
        return cls(low, max(high, low + least), digits, level)

    def x(self, share: float) -> float:
        return LEFT + (WIDTH - RIGHT - MARK - LEFT) * share

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - value) / (self.high - self.low)

    def shown(self, value: float) -> str:
        return f"{value:.{self.digits}f}"

    def frame(self) -> list[str]:
        """Grid, numbers, and the level of full graphs."""
        across = f"H{self.x(1.0):.0f}"
        parts = []
        for value in (self.low, (self.low + self.high) / 2, self.high):
            parts.append(f'<path class="grid" d="M{LEFT} {self.y(value):.1f}{across}"/>')
            parts.append(_text(LEFT - 6, self.y(value) + 4, self.shown(value), "end"))
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
            parts.append(_text(self.x(share), HEIGHT - 10, f"{100 * share:.0f} %", anchor))
        parts.append(_text(self.x(0.25), HEIGHT - 10, "kept", "middle"))
        if self.level is not None:
            height = self.y(self.level)
            parts.append(f'<path class="phase" d="M{LEFT} {height:.1f}{across}"/>')
            parts.append(_text(LEFT + 4, height - 4, "full graphs", "start", "phase"))
        return parts


def _chart(title: str, dial: DialView, values: Sequence[float], plane: _Plane) -> Chart:
    """A line over the kept share, whose dots are known by the number of their setting."""
    points = [
        (f"{plane.x(each.kept_ratio):.1f}", f"{plane.y(value):.1f}")
        for each, value in zip(dial.figures, values, strict=True)
    ]
    line = "L".join(f"{x} {y}" for x, y in points)
    dots = [
        f'<circle class="dot" data-at="{number}" cx="{x}" cy="{y}" r="3"><title>'
        f"lambda {each.lam:g}: kept {100 * each.kept_ratio:.1f} %, {plane.shown(values[number])}"
        "</title></circle>"
        for number, ((x, y), each) in enumerate(zip(points, dial.figures, strict=True))
    ]
    told = (
        f"{title}, at {len(values)} settings of the dial: from {plane.shown(values[0])} at "
        f"lambda 0 to {plane.shown(values[-1])} at lambda 1"
    )
    x, y = points[dial.own]
    mark = f'<circle class="mark" cx="{x}" cy="{y}" r="{MARK}"/>'
    parts = [*plane.frame(), f'<path class="line l0" d="M{line}"/>', *dots, mark]
    return Chart(
        title,
        f'<svg class="chart dial" role="img" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f"<title>{html(told)}</title>{''.join(parts)}</svg>",
    )


def _text(x: int | float, y: int | float, text: str, anchor: str, kind: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{html(text)}</text>'
