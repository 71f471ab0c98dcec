"""Assembly of nested arrays from repetition and definition levels.

An entry is a pair (rep, def). `rep` is the number of lists that the entry begins, counted from the innermost. 0 means
that the entry continues the innermost list. If `rep` is the number of all lists, the entry begins a row. `def` is a
full level (see `encoding.layouts.layers`). Level 0 is a valid value. The next levels belong to the layers, innermost
first: one level for an item layer (null), two levels for a list layer (null, empty).

For layer i, `rep_i` counts the lists up to and including it, `base_i` is the highest level of the layers inside it, and
`visible_i` is the highest level of it and of the items directly around it, up to the next list:

    an entry begins a slot of layer i    rep >= rep_i and def <= visible_i
    the slot is null                     def > base_i, except for a list's empty level base_i + 2
    the slots that a list holds          begun by layer i - 1, from the list's entry to the next entry of layer i

A fixed-size list of structs is an item layer in which `dimension` inner slots make up one slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding.layouts.page import Levels
from lance_duck.kernels.pages.assemble import Offsets, fold_items, fold_list

Validity = NDArray[np.uint8]
_NOTHING = np.empty(0, dtype=np.uint8)


@dataclass(frozen=True)
class Structure:
    """The layers of a column, innermost first.

    Attributes:
        lists: For each layer, whether it is a layer of variable-size lists.
        dimensions: For each layer, the number of inner slots per slot: 1 except for fixed-size lists.
    """

    lists: tuple[bool, ...]
    dimensions: tuple[int, ...]

    @cached_property
    def rep(self) -> tuple[int, ...]:
        """`rep_i` of each layer."""
        return tuple(sum(self.lists[: i + 1]) for i in range(len(self.lists)))

    @cached_property
    def base(self) -> tuple[int, ...]:
        """`base_i` of each layer."""
        return tuple(sum(2 if is_list else 1 for is_list in self.lists[:i]) for i in range(len(self.lists)))

    @cached_property
    def visible(self) -> tuple[int, ...]:
        """`visible_i` of each layer."""
        result = []
        for i, is_list in enumerate(self.lists):
            around = self.lists[i + 1 :]
            items = around.index(True) if True in around else len(around)
            result.append(self.base[i] + (2 if is_list else 1) + items)
        return tuple(result)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Number of entries per slot of each layer (columns without lists)."""
        return tuple(int(np.prod(self.dimensions[: i + 1], dtype=np.int64)) for i in range(len(self.dimensions)))

    @property
    def max_rep(self) -> int:
        """Number of lists."""
        return sum(self.lists)


@dataclass(frozen=True, slots=True)
class LevelEntries:
    """Full levels of a column.

    Attributes:
        rep: Repetition levels, or None if the column has no lists.
        def_: Definition levels, or None if all are 0.
        count: Number of entries.
    """

    rep: Levels | None
    def_: Levels | None
    count: int


def item_slots(structure: Structure, layer: int, entries: LevelEntries) -> tuple[int, Validity | None]:
    """Return the slot count of an item layer, and a validity flag per slot, or None if all slots are valid."""
    rep, def_ = entries.rep, entries.def_
    if rep is None:
        stride = structure.strides[layer]
        if def_ is None:
            return entries.count // stride, None
        flags = (def_[::stride] <= structure.base[layer]).view(np.uint8)
        return len(flags), None if flags.all() else flags
    if def_ is None:
        return int(np.count_nonzero(rep >= structure.rep[layer])), None
    flags = unset(len(rep) + 1, np.uint8)
    slots = fold_items(rep, def_, structure.rep[layer], structure.base[layer], structure.visible[layer], flags)
    flags = flags[:slots]
    return slots, None if flags.all() else flags


def list_slots(structure: Structure, layer: int, entries: LevelEntries) -> tuple[Offsets, Validity | None]:
    """Return the offsets (slots + 1) of a list layer into its inner layer, and a validity flag for each slot.

    Offsets are int32 if the entries allow it, otherwise int64. Flags are None if all slots are valid.
    """
    rep, def_ = entries.rep, entries.def_
    assert rep is not None
    form = np.array(
        [
            structure.rep[layer],
            structure.rep[layer - 1],
            structure.visible[layer],
            structure.visible[layer - 1],
            structure.base[layer],
        ],
        dtype=np.int64,
    )
    size = len(rep) + 1
    offsets: Offsets = unset(size, np.int32 if size <= MAX_INT32 else np.int64)
    levels = _NOTHING if def_ is None else def_
    flags = unset(len(levels) + 1, np.uint8)
    slots, nulls = fold_list(rep, levels, form, offsets, flags)
    return offsets[: slots + 1], flags[:slots] if nulls else None
