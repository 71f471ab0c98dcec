"""Dictionary arrays: distinct values, and an index for each value.

Columns of an Arrow dictionary type store its indices, from 0. In other columns index 0 is null, and index i refers to
item i - 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lance_duck.encoding.block import Dictionary, FixedWidth
from lance_duck.encoding.v20.array import EncodedArray, PageValues, both_valid
from lance_duck.encoding.v20.runs import RowRuns, span
from lance_duck.errors import CorruptError
from lance_duck.kernels.memory import Bytes
from lance_duck.store.request import Request, gather


@dataclass(frozen=True, slots=True)
class DictionaryArray:
    """`num_items` items and indices into them. The items are read once.

    Attributes:
        zero_is_null: Whether index 0 stands for null, and index i for item i - 1.
    """

    indices: EncodedArray
    items: EncodedArray
    num_items: int
    zero_is_null: bool
    _items: list[PageValues] = field(default_factory=list)

    @property
    def capacity(self) -> int | None:
        """Number of indices that the bytes can hold."""
        return self.indices.capacity

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return the values as a dictionary. A value is null if its index or its item is null."""
        if self._items:
            places, items = (yield from self.indices.read(runs)), self._items[0]
        else:
            requests = [self.indices.read(runs), self.items.read(span(0, self.num_items))]
            places, items = yield from gather(requests)
            self._items[:] = [items]
        if places.block is None:
            return places
        if not isinstance(places.block, FixedWidth) or places.block.bits not in (8, 16, 32, 64):
            raise CorruptError("the indices of a dictionary are not integers", expected="unsigned integers")
        indices: Bytes = np.frombuffer(places.block.data, f"<u{places.block.bits // 8}")
        validity = places.validity
        if self.zero_is_null:
            filled = indices != 0
            indices = indices - filled
            validity = validity if filled.all() else both_valid(filled.view(np.uint8), validity)
        return self._join(indices, validity, items, runs.count)

    def _join(self, indices: Bytes, validity: Bytes | None, items: PageValues, count: int) -> PageValues:
        if validity is not None:
            indices = np.where(validity != 0, indices, indices.dtype.type(0))
        if items.block is None or (self.num_items == 0 and validity is not None and not validity.any()):
            return PageValues(None, None, count)
        if len(indices) and int(indices.max()) >= self.num_items:
            raise CorruptError(
                "a dictionary index is too high", expected=f"below {self.num_items}", found=int(indices.max())
            )
        if items.validity is not None:
            validity = both_valid(validity, items.validity[indices])
        return PageValues(Dictionary(indices, items.block), validity, count)
