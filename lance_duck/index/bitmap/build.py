"""Builds entries from batches of values. Batches are joined into sorted runs.

The values of a run take up to a quarter of the memory limit, at most 256 MiB. Entries take a few bytes per row. They
stay in memory up to another quarter of the limit. Further entries go to memory-mapped temporary files.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from lance_duck.errors import StoreError
from lance_duck.file.write.contract import num_bytes
from lance_duck.index.bitmap.costs import RUN_BYTES, VALUES_SAMPLE
from lance_duck.index.bitmap.entries import RADIX, BitmapEntries, entry_blocks, grouped, maps_of
from lance_duck.index.bitmap.keys import has_numpy_order, sortable, written_order
from lance_duck.index.bitmap.layout import BITMAPS, KEYS
from lance_duck.index.kind import BuildOptions, Rows
from lance_duck.store import delete_temporary


class SpilledRuns:
    """Collects entries batch by batch. A context manager that removes its temporary files.

    Args:
        type_: Type of the values.
        options: The memory limit, and the callback for progress.
    """

    def __init__(self, type_: pa.DataType, options: BuildOptions) -> None:
        self._type = type_
        self._limit = max(options.memory_limit // 4, 1)
        self._run = min(self._limit, RUN_BYTES)
        self._progress = options.progress
        self._files = ExitStack()
        self._values: list[pa.Array] = []
        self._rows: list[NDArray[np.uint64]] = []
        self._waiting = self._held = self._taken = 0
        self._runs: list[Iterable[BitmapEntries]] = []

    def add(self, values: pa.Array, rows: NDArray[np.uint64], num_rows: int) -> None:
        """Add values and their rows. Progress advances by `num_rows` rows of the table."""
        self._values.append(values)
        self._rows.append(rows)
        self._waiting += num_bytes(values) + rows.nbytes
        if self._waiting >= self._run:
            self._close()
        self._taken += num_rows
        if self._progress is not None:
            self._progress(self._taken)

    def sources(self) -> list[Iterator[BitmapEntries]]:
        """Return the entries of each run, in file order."""
        self._close()
        return [iter(run) for run in self._runs]

    def _close(self) -> None:
        if not self._rows:
            return
        entries = _entries_of(pa.chunked_array(self._values, self._type), np.concatenate(self._rows))
        self._values, self._rows, self._waiting = [], [], 0
        if self._held + entries.nbytes > self._limit:
            self._runs.append(self._files.enter_context(_SpilledEntries(entries)))
            return
        self._held += entries.nbytes
        self._runs.append(entry_blocks(entries))

    def __enter__(self) -> SpilledRuns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()


class _SpilledEntries:
    """Entries in a temporary file."""

    def __init__(self, entries: BitmapEntries) -> None:
        handle, self._path = tempfile.mkstemp(prefix="lance_duck-bitmaps-", suffix=".arrow")
        os.close(handle)
        schema = pa.schema([(KEYS, entries.keys.type), (BITMAPS, pa.binary())])
        try:
            with pa.OSFile(self._path, "wb") as sink, pa.ipc.new_file(sink, schema) as file:
                for part in entry_blocks(entries):
                    file.write_batch(pa.record_batch([part.keys, part.maps], schema))
        except BaseException as error:
            delete_temporary(self._path)
            if isinstance(error, OSError):
                raise StoreError(
                    "entries of an index cannot be written to a temporary file", where=self._path, found=error
                ) from error
            raise

    def __iter__(self) -> Iterator[BitmapEntries]:
        with pa.memory_map(self._path) as source, pa.ipc.open_file(source) as file:
            for i in range(file.num_record_batches):
                batch = file.get_batch(i)
                yield BitmapEntries(batch.column(0), batch.column(1))

    def __enter__(self) -> _SpilledEntries:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        delete_temporary(self._path)


def _entries_of(values: pa.ChunkedArray, rows: Rows) -> BitmapEntries:
    """Build entries from values and their rows, in any order and possibly repeated."""
    if not len(values):
        return BitmapEntries(pa.array([], values.type), pa.array([], pa.binary()))
    plain = _as_bits(values)
    keys, ranks = _sorted(values) if _sorts_well(plain) else _hashed(plain, values.type)
    counts, rows = grouped(ranks, rows, len(keys))
    return BitmapEntries(keys, maps_of(counts, rows))


def _sorts_well(values: pa.ChunkedArray) -> bool:
    """Return whether sorting is faster than hashing: values are numbers, and most are distinct."""
    sample = values.slice(0, VALUES_SAMPLE)
    return has_numpy_order(values.type) and not values.null_count and len(sample.unique()) > len(sample) // 2


def _sorted(values: pa.ChunkedArray) -> tuple[pa.Array, NDArray[Any]]:
    """Sort the values. Returns the distinct keys in file order, and the position of each value's key among them."""
    array = values.combine_chunks()
    items = sortable(array).to_numpy(zero_copy_only=False)
    order = np.argsort(items)
    items = items[order]
    first = np.ones(len(items), np.bool_)
    first[1:] = items[1:] != items[:-1]
    rank = np.empty(len(items), np.uint32)
    rank[order] = np.cumsum(first) - 1
    return array.take(pa.array(order[first])), rank


def _hashed(values: pa.ChunkedArray, type_: pa.DataType) -> tuple[pa.Array, NDArray[Any]]:
    """Hash the values. Returns the distinct keys in file order, and the position of each value's key among them."""
    encoded = values.dictionary_encode(null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # older versions return chunks
        encoded = encoded.unify_dictionaries().chunk(0)
    keys = encoded.dictionary if values.type == type_ else encoded.dictionary.view(type_)
    order = written_order(keys)
    rank = np.empty(len(keys), np.uint16 if len(keys) <= RADIX else np.uint32)
    rank[order] = np.arange(len(keys))
    return keys.take(pa.array(order)), rank[encoded.indices.to_numpy(zero_copy_only=False)]


def _as_bits(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the bits of floats as integers, because each bit pattern is a key. Other values stay unchanged."""
    if not pt.is_floating(values.type):
        return values
    bits = {2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[values.type.byte_width]
    return pa.chunked_array([chunk.view(bits) for chunk in values.chunks], bits)


def list_items(lists: pa.Array, names: NDArray[np.uint64]) -> tuple[pa.Array, NDArray[np.uint64]]:
    """Return the items of lists, and each item's row."""
    if lists.null_count:  # a null list may still have items
        names = names[lists.is_valid().to_numpy(zero_copy_only=False)]
        lists = lists.drop_null()
    return pc.list_flatten(lists), names[pc.list_parent_indices(lists).to_numpy()]
