"""Geometry of a stacked bar chart as SVG; the page also has a table with all numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

WIDTH, HEIGHT = 880, 220  # size of the drawing
LEFT, TOP, FOOT = 44, 12, 30  # margins: left for the scale, above, and below for the days
LINES = 3  # lines of the scale above zero
DAYS_WRITTEN = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a column; `series` counts from 1."""

    series: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Label:
    """A text with its position."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The elements of the drawing."""

    bars: Sequence[Bar]
    scale: Sequence[Label]
    names: Sequence[Label]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT


def stacked(columns: Sequence[tuple[str, Sequence[int]]]) -> Chart:
    """One column for each (name, numbers): bars from the bottom up; zeros are omitted."""
    # The lines of the scale are 1, 2 or 5 times a power of ten apart.
    highest = max((sum(numbers) for _, numbers in columns), default=0)
    wanted = max(1, ceil(highest / LINES))
    power: int = 10 ** floor(log10(wanted))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted)
    floor_y = HEIGHT - FOOT
    unit = (floor_y - TOP) / (LINES * step)
    pitch = (WIDTH - LEFT) / max(1, len(columns))
    bars, names = [], []
    for place, (name, numbers) in enumerate(columns):
        x, y = LEFT + pitch * place, float(floor_y)
        for series, number in enumerate(numbers, 1):
            if number:
                height = number * unit
                y -= height
                bars.append(
                    Bar(
                        series,
                        round(x + 0.14 * pitch, 1),
                        round(y, 1),
                        round(0.72 * pitch, 1),
                        round(height, 1),
                    )
                )
        if place % max(1, ceil(len(columns) / DAYS_WRITTEN)) == 0:
            names.append(Label(round(x + pitch / 2, 1), HEIGHT - 10, name))
    scale = [
        Label(LEFT - 8, round(floor_y - line * step * unit, 1), f"{line * step:,}")
        for line in range(LINES + 1)
    ]
    return Chart(bars, scale, names)
