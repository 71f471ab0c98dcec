"""End offsets of variable-length rows. The end of a string counts bytes, the end of a list counts items.

Row i holds the items from the end of row i - 1 (0 before the first row of the page) to its own end. For a null row, an
adjustment that is larger than any end is added to the stored end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.v20.array import EncodedArray
from lance_duck.encoding.v20.kernels import unravel_ends
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.status import check_status
from lance_duck.store.request import Request

Ints = NDArray[np.int64]

NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of variable length.

    Attributes:
        offsets: int64 (rows + 1,), start of each row among the items of all rows read. Ascending, from 0.
        validity: uint8, 0 or 1 for each row, or None if all rows are valid.
        item_starts: int64 (runs,), first item of each run of rows. Runs ascend and are disjoint.
        item_stops: int64 (runs,), one past the last item of each run.
    """

    offsets: Ints
    validity: Bytes | None
    item_starts: Ints
    item_stops: Ints


@dataclass(frozen=True, slots=True)
class Ends:
    """Stored end offsets.

    Attributes:
        values: Unsigned integers.
        adjustment: Number added to the end of a null row, at least 1.
        limit: Maximum end, at most `NO_LIMIT`.
    """

    values: EncodedArray
    adjustment: int
    limit: int = NO_LIMIT

    @property
    def capacity(self) -> int | None:
        """Number of ends that the bytes can hold."""
        return self.values.capacity

    def read(self, runs: RowRuns) -> Request[Rows]:
        """Read runs of rows.

        Raises:
            CorruptError: Ends descend or exceed the limit.
        """
        firsts = runs.starts == 0
        ends = yield from self.values.read(RowRuns(np.where(firsts, 0, runs.starts - 1), runs.stops))
        if not isinstance(ends.block, FixedWidth) or ends.block.bits not in (8, 16, 32, 64):
            raise CorruptError("the ends of variable-length rows are not integers", expected="unsigned integers")
        stored = np.frombuffer(ends.block.data, f"<u{ends.block.bits // 8}").astype(np.uint64, copy=False)
        count = runs.count
        offsets, validity = np.empty(count + 1, np.int64), np.empty(count, np.uint8)
        starts, stops = np.empty(len(firsts), np.int64), np.empty(len(firsts), np.int64)
        adjustment, limit = np.uint64(self.adjustment), np.uint64(self.limit)
        status = unravel_ends(
            readonly(stored), firsts, runs.counts, adjustment, limit, offsets, validity, starts, stops
        )
        check_status(status, "binary or list", "row")
        return Rows(offsets, None if validity.all() else validity, starts, stops)
