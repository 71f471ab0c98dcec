"""Converts outlines to the levels of a page. The layers of a page only declare levels that occur on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lance_duck.encoding.layouts.layers import (
    ALL_VALID_ITEM,
    ALL_VALID_LIST,
    EMPTYABLE_LIST,
    NULL_AND_EMPTY_LIST,
    NULLABLE_ITEM,
    NULLABLE_LIST,
    Layers,
    parse_layers,
)
from lance_duck.encoding.write.layouts.page import PageLevels
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.pages.assemble import map_levels
from lance_duck.kernels.pages.shred import levels_present

_LIST_KINDS = {
    (False, False): ALL_VALID_LIST,
    (True, False): NULLABLE_LIST,
    (False, True): EMPTYABLE_LIST,
    (True, True): NULL_AND_EMPTY_LIST,
}
_ALL = 256
_IN_ORDER = bytes(range(_ALL))
_NO_MARKS = bytes(_ALL)


@dataclass(frozen=True, slots=True)
class LeafShape:
    """The layers of a physical column, innermost first.

    Attributes:
        lists: For each layer, whether it is a list.
        fixed: For each layer, whether every page declares all its possible levels, regardless of the page's content.
        has_dense_nulls: Whether a page may have levels for null items without levels for null or empty lists: see
            `write.grammar`.
    """

    lists: tuple[bool, ...]
    fixed: tuple[bool, ...]
    has_dense_nulls: bool = True

    @classmethod
    @lru_cache
    def of(
        cls,
        lists: tuple[bool, ...],
        nullable: tuple[bool, ...],
        *,
        in_fixed: bool = False,
        has_dense_nulls: bool = True,
    ) -> LeafShape:
        """Return the shape of a column. `in_fixed`: whether the column is inside fixed-size lists of structs.

        If a column has structs around lists, these structs and lists declare all their levels in all pages. pylance 14
        cannot read the column if pages declare the structs differently, or if a list inside a struct is declared as
        always valid. In columns with fixed-size lists of structs, all layers declare all their levels.
        """
        below = _inwards(lists, nullable)
        if in_fixed:
            return cls(lists, below, has_dense_nulls)
        around = [not lists[i] and any(lists[:i]) for i in range(len(lists))]
        if not any(around):
            return cls(lists, (False,) * len(lists), has_dense_nulls)
        fixed = tuple(is_list or (a and n) for is_list, a, n in zip(lists, around, below, strict=True))
        return cls(lists, fixed, has_dense_nulls)


def _inwards(lists: tuple[bool, ...], nullable: tuple[bool, ...]) -> tuple[bool, ...]:
    """Return whether each layer may be null. Items may be null if their immediate outer items may be null."""
    result = list(nullable)
    for i in reversed(range(len(lists) - 1)):
        result[i] |= result[i + 1] and not lists[i] and not lists[i + 1]
    return tuple(result)


FLAT = LeafShape((False,), (False,))
"""The shape of a column without lists and structs."""


def page_levels(
    shape: LeafShape, begins: Bytes | None, holes: Bytes | None, num_slots: int, num_rows: int
) -> PageLevels:
    """Return levels for the smallest layers that can hold them.

    Args:
        shape: Layers of the column.
        begins: Beginning of each entry, or None without lists.
        holes: Marks of missing values, or None if all are 0.
        num_slots: Number of entries that have a value.
        num_rows: Number of rows.
    """
    def_ = None
    if holes is None:
        layers, _, level = _least_layers(shape, _NO_MARKS)
        if level:
            def_ = np.zeros(num_slots if begins is None else len(begins), dtype=np.uint8)
    else:
        present = np.zeros(_ALL, dtype=np.uint8)
        levels_present(readonly(holes), present)
        layers, table, level = _least_layers(shape, present.tobytes())
        def_ = holes if level else None
        if level and (table[: level + 1].tobytes() != _IN_ORDER[: level + 1] or present[level + 1 :].any()):
            def_ = np.empty(len(holes), dtype=np.uint8)
            map_levels(readonly(holes), table.copy(), def_)
    max_rep = np.uint8(sum(shape.lists))
    rep = None if begins is None else max_rep - begins
    return PageLevels(layers, rep, def_, num_slots, num_rows)


@lru_cache
def _least_layers(shape: LeafShape, present: bytes) -> tuple[Layers, Bytes, int]:
    """Return the layers for the marks that occur (256 flags), the level of each mark, and the highest visible level."""
    kinds, table, level = [], np.zeros(_ALL, dtype=np.uint8), 0
    marks = [1 + sum(1 + is_list for is_list in shape.lists[i + 1 :]) for i in range(len(shape.lists))]
    is_needed = _inwards(shape.lists, tuple(bool(present[mark]) for mark in marks))
    innermost = shape.lists.index(True) if True in shape.lists else 0
    below = not shape.has_dense_nulls and any(is_needed[:innermost])
    for is_list, is_fixed, is_used, mark in zip(shape.lists, shape.fixed, is_needed, marks, strict=True):
        result = [is_fixed or is_used]
        if is_list:
            result.append(is_fixed or bool(present[mark + 1]) or (below and not is_used))
            below = False
        kinds.append(_LIST_KINDS[result[0], result[1]] if is_list else NULLABLE_ITEM if result[0] else ALL_VALID_ITEM)
        for i, is_there in enumerate(result):
            level += is_there
            table[mark + i] = level
    return parse_layers(kinds, "page"), readonly(table), level
