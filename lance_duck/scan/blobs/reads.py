"""Reads blobs of selected rows: as files, as bytes, or as byte ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of
from lance_duck.errors import InvalidInputError
from lance_duck.file.blobs.file import BlobFile, check_buffer_size, check_part
from lance_duck.file.blobs.places import BlobPlace, blob_places, read_places
from lance_duck.file.costs import READ_AHEAD
from lance_duck.file.reader import LanceFile
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID, project
from lance_duck.scan.read.take import Addresses, Int64s
from lance_duck.scan.read.take import places as numbers
from lance_duck.scan.table_scan import TableScan
from lance_duck.store.request import ByteRange, run

SELECTORS: Final = ("ids", "addresses", "indices")
RowSelection = tuple[str, Any]
"""One of `SELECTORS`, and the ids, addresses or positions of the rows."""

_MOST_PARTS: Final = 256


def choose(ids: Any = None, addresses: Any = None, indices: Any = None) -> RowSelection:
    """Return the selector that the caller passed, with its values.

    Raises:
        InvalidInputError: The caller passed none or several of the selectors.
    """
    selections = [
        (name, rows) for name, rows in zip(SELECTORS, (ids, addresses, indices), strict=True) if rows is not None
    ]
    if len(selections) != 1:
        names = ", ".join(name for name, _ in selections) or "none"
        raise InvalidInputError(
            "choose blob rows in one way", expected="one of ids, addresses and indices", found=names
        )
    return selections[0]


def take_blobs(
    table: TableScan, column: str, selection: RowSelection, buffer_size: int = READ_AHEAD
) -> list[BlobFile | None]:
    """Return the blobs of rows as files, in the order of the selection. Null blobs become None.

    Raises:
        InvalidInputError: The blob column or a row does not exist.
    """
    size = check_buffer_size(buffer_size)
    _, places = _find(table, column, selection)
    return [None if place is None else BlobFile(place, size) for place in places]


def read_blobs(table: TableScan, column: str, selection: RowSelection) -> list[tuple[int, bytes | None]]:
    """Return the addresses and blobs of rows, in the order of the selection. See `take_blobs`.

    Raises:
        CorruptError: A blob extends past the end of its file.
    """
    addresses, places = _find(table, column, selection)
    return list(zip(addresses, _bytes(places), strict=True))


def read_ranges(
    table: TableScan, column: str, requests: Sequence[tuple[int, int, int]], selector: str
) -> list[tuple[int, int, bytes | None]]:
    """Return byte ranges of blobs.

    Args:
        table: The table.
        column: A blob column.
        requests: (row, offset, length) of each range. Offset and length are in bytes. A row may occur repeatedly.
        selector: Meaning of the rows in `requests`: "ids", "addresses" or "indices".

    Returns:
        (request index, row address, bytes) of each range, in the order of the requests. The bytes are None if the blob
        is null.

    Raises:
        InvalidInputError: The blob column or a row does not exist, or a range exceeds its blob.
    """
    if selector not in SELECTORS:
        raise InvalidInputError("selector", expected=" or ".join(SELECTORS), found=repr(selector))
    values = numbers([n for request in requests for n in request], "invalid blob ranges")
    if len(values) != 3 * len(requests):
        raise InvalidInputError("invalid blob ranges", expected="tuples of (row, offset, length)")
    rows, offsets, lengths = values.reshape(-1, 3).T
    addresses, places = _find(table, column, (selector, rows.copy()))
    parts = [
        None if place is None else _BlobRange(place, offset, length)
        for place, offset, length in zip(places, offsets.tolist(), lengths.tolist(), strict=True)
    ]
    return [(i, address, data) for i, (address, data) in enumerate(zip(addresses, _bytes(parts), strict=True))]


@dataclass(frozen=True, slots=True)
class _BlobRange:
    """A byte range of a blob."""

    place: BlobPlace
    offset: int
    length: int

    def extent(self) -> ByteRange:
        whole = self.place.extent()
        check_part(self.offset, self.length, whole.size)
        return replace(whole, offset=whole.offset + self.offset, size=self.length)


def _bytes(places: Sequence[BlobPlace | _BlobRange | None]) -> Iterator[bytes | None]:
    for first in range(0, len(places), _MOST_PARTS):
        batch = places[first : first + _MOST_PARTS]
        for place, data in zip(batch, run(read_places(batch)), strict=True):
            yield None if place is None else data.tobytes()


def _find(table: TableScan, column: str, selection: RowSelection) -> tuple[list[int], list[BlobPlace | None]]:
    """Return the addresses of selected rows, and the locations of their blobs."""
    schema = table.snapshot.schema
    field = schema.by_path(column)
    if not field.blob_version:
        raise InvalidInputError(f"{column!r} is not a blob column", found=field.logical_type)
    projection = project(schema, [column], with_row_id=True, with_row_address=True)
    selector, rows = selection
    row_numbers = numbers(rows, "choose blob rows in one way")
    if selector == "indices" and table.restriction is not None:
        everything = table.reader(table.plan(ScanOptions(columns=[ROW_ADDRESS]))).read_all()
        if len(row_numbers) and (row_numbers.min() < 0 or row_numbers.max() >= len(everything)):
            raise InvalidInputError("row position", expected=f"0 to {len(everything) - 1}")
        selector, row_numbers = (
            "addresses",
            everything.column(0).combine_chunks().to_numpy()[row_numbers].view(np.int64),
        )
    take = {"ids": table.taker.by_row_id, "addresses": table.taker.by_address, "indices": table.taker.by_position}
    batch = take[selector](row_numbers, projection)
    if batch.num_rows != len(row_numbers):
        raise _missing(selector, row_numbers, batch)
    addresses = batch.column(ROW_ADDRESS).to_numpy()
    return addresses.tolist(), _places(table, field.id, addresses, batch.column(0))


def _missing(selector: str, row_numbers: Int64s | Addresses, batch: pa.RecordBatch) -> InvalidInputError:
    present = batch.column(ROW_ID if selector == "ids" else ROW_ADDRESS).to_numpy()
    lost = difference_of(row_numbers.view(np.uint64), present)
    return InvalidInputError("the rows were deleted or do not exist", where=selector, found=lost[:5].tolist())


def _places(
    table: TableScan, field_id: int, addresses: NDArray[np.uint64], descriptions: pa.StructArray
) -> list[BlobPlace | None]:
    snapshot = table.snapshot

    @cache
    def file_of(fragment_id: int) -> LanceFile | None:
        files = (file for file in snapshot.fragment(fragment_id).files if field_id in file.fields)
        data_file = next(files, None)
        return None if data_file is None else snapshot.data_file(data_file)

    result: list[BlobPlace | None] = []
    fragments = addresses >> np.uint64(32)
    edges = [*np.flatnonzero(np.diff(fragments, prepend=np.uint64(2**63))).tolist(), len(fragments)]
    for start, stop in pairwise(edges):
        file = file_of(int(fragments[start]))
        descriptions_slice = descriptions.slice(start, stop - start)
        result += [None] * len(descriptions_slice) if file is None else blob_places(descriptions_slice, file)
    return result
