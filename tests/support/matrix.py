"""Parameter combinations: all in the full profile, and a pairwise subset in the quick one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest


def pairwise(*axes: Sequence[Any], ids: Sequence[Iterable[str]] | None = None) -> list[Any]:
    """Return test parameters; combinations outside the pairwise subset are marked as slow.

    A combination is kept if the positions of its values add up to a multiple of the shortest axis length. Any two
    values then have a third that completes a kept combination.

    Args:
        axes: Values of each parameter, three axes or more.
        ids: Names of the values of each axis, or None to use their text.
    """
    assert len(axes) >= 3
    least = min(len(axis) for axis in axes)
    names = [[str(value) for value in axis] for axis in axes] if ids is None else [list(axis) for axis in ids]
    table = []
    for places in product(*(range(len(axis)) for axis in axes)):
        values = [axis[place] for axis, place in zip(axes, places, strict=True)]
        marks = () if sum(places) % least == 0 else (pytest.mark.slow,)
        name = "-".join(axis[place] for axis, place in zip(names, places, strict=True))
        table.append(pytest.param(*values, marks=marks, id=name))
    return table
