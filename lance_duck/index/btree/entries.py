"""The entries of a B-tree: runs of them are read on demand, and cached within a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined, joined_arrays
from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError
from lance_duck.index.btree.costs import PAGES_AT_ONCE, TREE_BYTES
from lance_duck.index.btree.keys import BTreeKeys
from lance_duck.index.btree.layout import IDS, VALUES
from lance_duck.index.btree.lookup import Lookup
from lance_duck.index.files import SegmentFile
from lance_duck.store import Request, gather, run

Rows = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Run:
    """Adjacent entries.

    Attributes:
        start: Place of the first entry.
        values_from: Place of the first entry that is not null.
        keys: Keys of the entries that are not null.
        ids: uint64, rows of all entries.
    """

    start: int
    values_from: int
    keys: BTreeKeys
    ids: Rows

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.keys.nbytes + int(self.ids.nbytes)


class BTreeEntries:
    """A reader of entries. Safe to use from several threads.

    Args:
        files: Files of the entries, in order.
        lookup: The page lookup.
        type_: Type of the values.
        make: Makes keys of values.
        limit: Bytes of entries that are cached.
    """

    def __init__(
        self,
        files: Sequence[SegmentFile],
        lookup: Lookup,
        type_: pa.DataType,
        make: Callable[[pa.Array], BTreeKeys],
        limit: int = TREE_BYTES,
    ) -> None:
        self._files = files
        self._firsts = [0]
        for file in files:
            self._firsts.append(self._firsts[-1] + file.num_rows)
            file.column(VALUES, type_)
            file.column(IDS, pa.uint64())
        self._lookup = lookup
        self._type = type_
        self._make = make
        self._limit = limit
        self._runs: SizedCache[Run] = SizedCache(limit, lambda run: run.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes of the entries that are cached."""
        return self._runs.nbytes

    def pages(self, numbers: Iterable[int]) -> list[Run]:
        """Return pages; those that are not cached are read in one round."""
        pages = list(numbers)
        runs = {page: entries for page in pages if (entries := self._runs.find(page)) is not None}
        new_pages = [page for page in pages if page not in runs]
        if new_pages:
            for page, entries in zip(new_pages, self._read_pages(new_pages), strict=True):
                runs[page] = entries
                self._runs.put(page, entries)
        return [runs[page] for page in pages]

    def ids(self, spans: Iterable[tuple[int, int]]) -> list[Rows]:
        """Read the rows of the entries of spans, each from one place to another, in one round."""
        pieces = [piece for span in spans for piece in self._requests(IDS, *span)]
        return [self._checked_ids(array) for array in run(gather(pieces))] if pieces else []

    def read(self, start: int, stop: int) -> tuple[pa.Array, Rows]:
        """Read values and rows of entries from one place to another, without caching them."""
        values, ids = (self._requests(name, start, stop) for name in (VALUES, IDS))
        arrays = run(gather([*values, *ids]))
        pair = (joined_arrays(arrays[: len(values)], self._type), arrays[len(values) :])
        return pair[0], joined((self._checked_ids(array) for array in pair[1]), np.uint64)

    def fill(self) -> None:
        """Read pages from the first on, as many as the cache holds."""
        pages = list(range(self._lookup.num_pages))
        for at in range(0, len(pages), PAGES_AT_ONCE):
            self.pages(pages[at : at + PAGES_AT_ONCE])
            if self.nbytes * 2 > self._limit:
                break

    def _read_pages(self, pages: list[int]) -> list[Run]:
        spans = [self._lookup.span(page) for page in pages]
        requests = [piece for start, _, stop in spans for piece in self._both(start, stop)]
        arrays = run(gather(requests))
        pairs = zip(pages, spans, arrays[::2], arrays[1::2], strict=True)
        return [self._run(page, span, values, ids) for page, span, values, ids in pairs]

    def _both(self, start: int, stop: int) -> list[Request[pa.Array]]:
        """Return the requests for the values and rows of a page, which lies in one file."""
        return [*self._requests(VALUES, start, stop), *self._requests(IDS, start, stop)]

    def _requests(self, name: str, start: int, stop: int) -> list[Request[pa.Array]]:
        places = zip(self._files, self._firsts, self._firsts[1:], strict=False)
        return [
            file.column(name).read(slice(max(start, first) - first, min(stop, end) - first))
            for file, first, end in places
            if max(start, first) < min(stop, end)
        ]

    def _run(self, page: int, span: tuple[int, int, int], values: pa.Array, ids: pa.Array) -> Run:
        start, values_from, _ = span
        nulls = values_from - start
        if values.null_count != nulls or values.slice(nulls).null_count:
            raise CorruptError(f"nulls of page {page}", where=self._lookup.where, expected=nulls)
        keys = self._make(values.slice(nulls))
        if len(keys) and not self._fits(page, keys):
            raise CorruptError(f"page {page} disagrees with the lookup table", where=self._lookup.where)
        return Run(start, values_from, keys, self._checked_ids(ids))

    def _fits(self, page: int, keys: BTreeKeys) -> bool:
        least, last = self._lookup.least(page), keys.part(len(keys) - 1, len(keys))
        return (
            keys.is_ascending()
            and last.equals(self._lookup.greatest(page))
            and (least is None or least.equals(keys.part(0, 1)))
        )

    def _checked_ids(self, ids: pa.Array) -> Rows:
        if ids.null_count:
            raise CorruptError("rows of a B-tree", where=self._lookup.where, expected="no nulls")
        rows: Rows = ids.to_numpy()
        return rows
