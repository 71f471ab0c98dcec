"""Charts of ratios as SVG, for light and for dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from benchmarks._harness import geometric_mean

WIDTH: Final = 640
LABELS: Final = 264
"""Width of the labels on the left, in pixels."""
MEANS: Final = 50
"""Width of the means on the right, in pixels."""
HEIGHT: Final = 24
"""Height of a row, in pixels."""
TOP: Final = 62
BOTTOM: Final = 34

TEXT: Final = "#757b84"
GRID: Final = "#8a919b"
FASTER: Final = "#2f8fd0"
SLOWER: Final = "#dd7a26"
"""Colours with enough contrast on white and on black."""


@dataclass(frozen=True)
class Row:
    """A line of a chart.

    Attributes:
        label: Text on the left.
        ratios: One ratio for each question.
    """

    label: str
    ratios: Sequence[float]

    @property
    def mean(self) -> float:
        return geometric_mean(self.ratios)


@dataclass(frozen=True)
class Scale:
    """A logarithmic axis of ratios.

    Attributes:
        low: Least ratio on the axis.
        high: Greatest ratio on the axis.
    """

    low: float
    high: float

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Scale:
        """Return an axis that holds all ratios, and 1."""
        ratios = [ratio for row in rows for ratio in row.ratios]
        return cls(min(0.5, *ratios) * 0.9, max(2.0, *ratios) * 1.1)

    def x(self, ratio: float) -> float:
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(LABELS + share * (WIDTH - LABELS - MEANS), 1)

    def ticks(self) -> list[float]:
        """Return round numbers on the axis."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
        steps = (1, 2, 5) if self.high / self.low < 500 else (1,)
        numbers = [float(f"{step}e{decade}") for decade in decades for step in steps]
        return [number for number in numbers if self.low <= number <= self.high]


def chart(title: str, rows: Sequence[Row]) -> str:
    """Return a chart with a dot for each question, and a bar for each row's geometric mean.

    Bars begin at 1. They point to the left if lance-duck is faster, and to the right if it is slower.
    """
    scale = Scale.of(rows)
    height = TOP + len(rows) * HEIGHT + BOTTOM
    means = "; ".join(f"{row.label} {row.mean:.2f}" for row in rows)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title description" font-family="system-ui, sans-serif" font-size="13">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">Geometric means of the ratios, below 1 is faster. {escape(means)}.</desc>',
        f'<g fill="{TEXT}">',
        f'<text x="0" y="16" font-size="15" font-weight="600">{escape(title)}</text>',
        '<text x="0" y="36">bar: geometric mean, dot: one question, logarithmic scale</text>',
        *_axis(scale, height),
        "</g>",
    ]
    for number, row in enumerate(rows):
        lines += _row(row, scale, TOP + number * HEIGHT + HEIGHT // 2)
    return "\n".join([*lines, "</svg>", ""])


def _axis(scale: Scale, height: int) -> Iterator[str]:
    bottom = height - BOTTOM + 4
    for tick in scale.ticks():
        x = scale.x(tick)
        stroke = 'stroke-width="1.5"' if tick == 1 else 'stroke-opacity="0.35"'
        yield f'<path d="M{x} {TOP - 6}V{bottom}" stroke="{GRID}" {stroke}/>'
        yield f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" font-size="12">{tick:g}</text>'
    one = scale.x(1)
    yield f'<text x="{one - 8}" y="{TOP - 10}" text-anchor="end" font-size="12">← faster</text>'
    yield f'<text x="{one + 8}" y="{TOP - 10}" font-size="12">slower →</text>'


def _row(row: Row, scale: Scale, y: int) -> Iterator[str]:
    colour = FASTER if row.mean <= 1 else SLOWER
    left, right = sorted((scale.x(row.mean), scale.x(1)))
    yield f'<text x="{LABELS - 12}" y="{y + 4}" text-anchor="end" fill="{TEXT}">{escape(row.label)}</text>'
    yield (
        f'<rect x="{left}" y="{y - 7}" width="{max(1.0, right - left):.1f}" height="14" rx="2" '
        f'fill="{colour}" fill-opacity="0.55"/>'
    )
    for ratio in sorted(row.ratios):
        yield f'<circle cx="{scale.x(ratio)}" cy="{y}" r="2.2" fill="{TEXT}" fill-opacity="0.7"/>'
    yield f'<text x="{WIDTH}" y="{y + 4}" text-anchor="end" fill="{TEXT}">{row.mean:.2f}</text>'
