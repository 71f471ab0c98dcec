"""Ordered selections of rows of one version.

`save` stores a selection as a Lance table. Its only column, `place` (int64), contains row positions. The schema
metadata stores the number of the version that the positions refer to, under "lance_duck:version".
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
import pyarrow as pa

from lance_duck.arguments import checked_calls, unknown_value
from lance_duck.dataset import LanceDataset
from lance_duck.errors import InvalidInputError
from lance_duck.loading.forms import FORMS
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.projection import ROW_OFFSET, ColumnsLike
from lance_duck.scan.table_scan import TableScan
from lance_duck.write_dataset import write_dataset

Positions: TypeAlias = "range | np.ndarray[Any, np.dtype[np.int64]]"
Granularity: TypeAlias = Literal["rows", "batch", "fragment"]

_VERSION: Final = b"lance_duck:version"
_GRANULARITIES: Final = ("rows", "batch", "fragment")


@checked_calls
class RowSelection:
    """An ordered selection of rows of one version. It is immutable and can be pickled.

    A selection of all rows in order, and its shards, use constant memory. Other selections use 8 bytes per row.

    Args:
        dataset: The dataset to select from. The selection always reads the current version of this dataset.
        places: int64 (rows,): positions in this version, in any order. Default: all rows.
    """

    def __init__(self, dataset: LanceDataset, places: Sequence[int] | Positions | None = None) -> None:
        table = dataset.handle.table
        if table.restriction is not None:
            live_places = _places(dataset.scan(columns=[ROW_OFFSET]).to_table())
            places = live_places if places is None else live_places[np.asarray(places, np.int64)]
            table = TableScan(table.snapshot)
        self._dataset = LanceDataset(dataset.uri, table=table)
        total = table.snapshot.count_rows()
        if places is None:
            places = range(total)
        elif not isinstance(places, range):
            places = np.asarray(places, np.int64)
            if len(places) and not (places.min() >= 0 and places.max() < total):
                raise InvalidInputError("places", where="RowSelection", expected=f"0 to {total - 1}")
        self._places: Positions = places

    @classmethod
    def of(
        cls,
        dataset: LanceDataset | str | os.PathLike[str] | RowSelection,
        filter: FilterLike | None = None,  # noqa: A002
    ) -> RowSelection:
        """Select rows from a dataset, a table URI or another selection.

        Args:
            dataset: The dataset, URI or selection.
            filter: Condition that the rows must meet. Default: all rows.
        """
        if not isinstance(dataset, RowSelection):
            dataset = cls(dataset if isinstance(dataset, LanceDataset) else LanceDataset(dataset))
        return dataset if filter is None else dataset.filter(filter)

    @property
    def dataset(self) -> LanceDataset:
        """The dataset at the version that the selection reads."""
        return self._dataset

    @property
    def places(self) -> Positions:
        """Positions of the rows, in order."""
        return self._places

    def __len__(self) -> int:
        return len(self._places)

    @classmethod
    def concat(cls, selections: Sequence[Self]) -> Self:
        """Return the rows of several selections of one version, one after another.

        Raises:
            InvalidInputError: There are no selections, or they are of several versions.
        """
        if not selections or len({each.dataset.version for each in selections}) > 1:
            raise InvalidInputError("selections", where="concat", expected="one or more, of one version")
        parts = [each.places for each in selections if len(each)]
        if len(parts) < 2:
            return selections[0]._with(parts[0] if parts else range(0))
        return selections[0]._with(np.concatenate([np.asarray(part, np.int64) for part in parts]))

    # Derived selections.

    def filter(self, filter: FilterLike) -> Self:  # noqa: A002
        """Return the rows that pass a filter. Reads only the filter's columns, or an index."""
        passing = _places(self._dataset.scan(columns=[ROW_OFFSET], filter=filter).to_table())
        total = self._dataset.handle.snapshot.count_rows()
        if isinstance(self._places, range) and self._places == range(total):
            return self._with(passing)
        mask = np.zeros(total, bool)
        mask[passing] = True
        places = np.asarray(self._places, np.int64)
        return self._with(places[mask[places]])

    def shuffle(self, seed: int | Sequence[int] = 0, block: int = 1) -> Self:
        """Shuffle the rows. The same seed gives the same order with the same numpy release. `save` stores an order.

        Args:
            seed: An integer, or several, such as (seed, epoch).
            block: Number of consecutive rows that stay together. Larger blocks are faster to read.
        """
        if block < 1:
            raise InvalidInputError("block", where="shuffle", expected="1 or more", found=block)
        order = np.random.default_rng(seed).permutation(-(-len(self) // block))
        if block > 1:
            order = (order[:, np.newaxis] * block + np.arange(block)).reshape(-1)
            order = order[order < len(self)]
        return self._with(np.asarray(self._places, np.int64)[order])

    def split(self, shares: Sequence[float]) -> list[Self]:
        """Split the rows into consecutive selections. Call `shuffle` first for random selections.

        Args:
            shares: Fraction of the rows for each selection. Their sum is at most 1. Remaining rows are dropped.
        """
        total = math.fsum(shares)
        if min(shares, default=0) < 0 or not total <= 1 + 1e-9:
            raise InvalidInputError(
                "invalid shares", where="split", expected="non-negative numbers with a sum of at most 1", found=shares
            )
        ends = [round(math.fsum(shares[: place + 1]) * len(self)) for place in range(len(shares))]
        return [self[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def shard(self, index: int, count: int, by: Granularity = "rows", batch_size: int = 1, even: bool = False) -> Self:
        """Return the share of one of several readers. Each row is in exactly one share.

        Args:
            index: Number of the reader, 0 to count - 1.
            count: Number of readers.
            by: "rows": contiguous parts of nearly equal length. "batch": every count-th batch. "fragment": every
                count-th fragment, regardless of its length.
            batch_size: Rows of a batch.
            even: Whether all parts have the same number of whole batches. If True, the remaining rows are dropped.
        """
        if not 0 <= index < count:
            raise InvalidInputError("index", where="shard", expected=f"0 to {count - 1}", found=index)
        if by not in _GRANULARITIES:
            raise unknown_value("by", by, _GRANULARITIES)
        if even:
            whole = len(self) // (count * batch_size) * count * batch_size
            return self[:whole].shard(index, count, "rows" if by == "fragment" else by, batch_size)
        if by == "rows":
            return self[len(self) * index // count : len(self) * (index + 1) // count]
        places = np.asarray(self._places, np.int64)
        if by == "batch":
            return self._with(places[np.arange(len(places)) // batch_size % count == index])
        ends = np.cumsum(self._dataset.handle.snapshot.row_counts())
        return self._with(places[np.searchsorted(ends, places, side="right") % count == index])

    def __getitem__(self, part: slice) -> Self:
        if not isinstance(part, slice):
            raise InvalidInputError(
                "a RowSelection can only be sliced",
                expected="a slice",
                found=part,
                remedy="use take(places) for single rows",
            )
        return self._with(self._places[part])

    # Rows.

    def take(self, indices: Any, columns: ColumnsLike | None = None) -> pa.RecordBatch:
        """Return rows by position in the selection, in the order of `indices`.

        Args:
            indices: Whole numbers, 0 to less than the length of the selection, in any order.
            columns: See `LanceDataset.take`.
        """
        numbers = np.asarray(indices, np.int64)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(self)):
            raise InvalidInputError("indices", where="take", expected=f"0 to {len(self) - 1}")
        places = self._places
        if isinstance(places, range):
            return self._read(places.start + numbers * places.step, columns)
        return self._read(places[numbers], columns)

    def batches(
        self,
        batch_size: int,
        columns: ColumnsLike | None = None,
        *,
        drop_last: bool = False,
        form: str = "arrow",
    ) -> Iterator[Any]:
        """Read the rows in their order.

        Args:
            batch_size: Number of rows in a batch. The last batch may be smaller.
            columns: See `LanceDataset.take`.
            drop_last: Whether to drop a smaller last batch.
            form: "arrow": RecordBatch. "numpy" and "jax": dicts of arrays, see `to_numpy` and `to_jax`.
        """
        if batch_size < 1:
            raise InvalidInputError("batch_size", expected="1 or more", found=batch_size)
        if form not in FORMS:
            raise unknown_value("form", form, FORMS)
        return self._batches(batch_size, columns, drop_last, form)

    # Storage.

    def save(self, uri: str | os.PathLike[str]) -> None:
        """Store the row positions as a table, in order. Other processes and later runs can then read the same rows."""
        schema = pa.schema([("place", pa.int64())], {_VERSION: str(self._dataset.version)})
        write_dataset(pa.table([np.asarray(self._places, np.int64)], schema=schema), uri, mode="overwrite")

    @classmethod
    def load(cls, dataset: LanceDataset, uri: str | os.PathLike[str]) -> Self:
        """Load a selection that `save` stored.

        Args:
            dataset: The dataset at the version that the selection refers to.
            uri: Path or URI of the stored selection.

        Raises:
            InvalidInputError: The table is not a selection, or it refers to a different version.
        """
        stored = LanceDataset(uri)
        version = (stored.schema.metadata or {}).get(_VERSION)
        if version is None or stored.schema.names != ["place"]:
            raise InvalidInputError("not a selection of rows", where=str(stored.uri))
        if version != str(dataset.version).encode():
            raise InvalidInputError(
                "the selection belongs to another version",
                where=str(stored.uri),
                expected=f"version {dataset.version}",
                found=f"version {version.decode()}",
                remedy="open the dataset at that version",
            )
        return cls(dataset, _places(stored.to_table()))

    def __repr__(self) -> str:
        return f"<RowSelection of {self._dataset!r}: {len(self)} rows>"

    def _with(self, places: Positions) -> Self:
        other = object.__new__(type(self))
        other._dataset, other._places = self._dataset, places
        return other

    def _batches(self, batch_size: int, columns: ColumnsLike | None, drop_last: bool, form: str) -> Iterator[Any]:
        convert = FORMS[form]
        for batch in self._streamed(batch_size, columns):
            if not drop_last or batch.num_rows == batch_size:
                yield convert(batch)

    def _streamed(self, batch_size: int, columns: ColumnsLike | None) -> Iterator[pa.RecordBatch]:
        done, total = 0, len(self)
        for end in _run_ends(self._places, batch_size):
            whole = end if end == total else end // batch_size * batch_size
            if whole > done:
                yield from self._scanned(done, whole, batch_size, columns)
                done = whole
            if end > done:  # a batch with rows of several runs
                yield self._read(np.asarray(self._places[done : done + batch_size], np.int64), columns)
                done = min(done + batch_size, total)
        for start in range(done, total, batch_size):
            yield self._read(np.asarray(self._places[start : start + batch_size], np.int64), columns)

    def _scanned(self, start: int, end: int, batch_size: int, columns: ColumnsLike | None) -> Iterator[pa.RecordBatch]:
        """Read rows with consecutive positions."""
        first = int(self._places[start])
        scan = self._dataset.scan(
            columns, offset=first, limit=end - start, batch_size=batch_size, strict_batch_size=True
        )
        yield from scan.to_batches()

    def _read(self, places: np.ndarray[Any, Any], columns: ColumnsLike | None) -> pa.RecordBatch:
        table = self._dataset.handle.table
        return table.taker.by_position(places, table.projection(columns))


_LONG_RUN: Final = 8
"""Average number of batches in a run of consecutive positions from which runs are scanned."""


def _run_ends(places: Positions, batch_size: int) -> Sequence[int]:
    """Return the end of each run of consecutive positions, or nothing if the runs are short."""
    if isinstance(places, range) and places.step == 1:
        return [len(places)] if len(places) else []
    cuts = np.flatnonzero(np.diff(np.asarray(places, np.int64)) != 1) + 1
    is_long = len(places) >= (len(cuts) + 1) * _LONG_RUN * batch_size
    return [*cuts.tolist(), len(places)] if is_long else []


def _places(table: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the only column of a table as positions."""
    column = table.column(0).combine_chunks()
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)
