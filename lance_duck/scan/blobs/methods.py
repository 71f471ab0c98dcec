"""The methods of a dataset that read blobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.file.blobs.file import BlobFile
from lance_duck.file.costs import READ_AHEAD
from lance_duck.scan.table_scan import HasTable

if TYPE_CHECKING:
    from lance_duck.scan.blobs import reads
else:
    reads = lazy.modules(globals(), "lance_duck.scan.blobs", "reads")


@checked_calls
class BlobReads:
    """Mixin that reads blobs of a dataset."""

    handle: HasTable

    def take_blobs(
        self,
        blob_column: str,
        ids: Any = None,
        addresses: Any = None,
        indices: Any = None,
        *,
        buffer_size: int = READ_AHEAD,
    ) -> list[BlobFile | None]:
        """Return the blobs of rows as lazily read files, in the order of the arguments. Null blobs become None.

        Pass exactly one of `ids` (`_rowid`), `addresses` (`_rowaddr`) and `indices` (positions).

        Args:
            blob_column: A blob column. "a.b" names field b of struct a.
            ids: Rows by `_rowid`.
            addresses: Rows by `_rowaddr`.
            indices: Rows by position.
            buffer_size: Size of the read-ahead for sequential reads, in bytes.

        Raises:
            InvalidInputError: The blob column does not exist, or a row is deleted or does not exist.
        """
        return reads.take_blobs(self.handle.table, blob_column, reads.choose(ids, addresses, indices), buffer_size)

    def read_blobs(
        self,
        blob_column: str,
        ids: Any = None,
        addresses: Any = None,
        indices: Any = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """Return (row address, bytes) of blobs, in the order of the arguments. The bytes are None for a null blob.

        Args:
            blob_column: A blob column.
            ids: Rows, as in `take_blobs`.
            addresses: Rows, as in `take_blobs`.
            indices: Rows, as in `take_blobs`.
            io_buffer_size: Without effect: nearby ranges are always read together.
            preserve_order: Without effect: the result is always in the order of the arguments.

        Raises:
            InvalidInputError: The blob column does not exist, or a row is deleted or does not exist.
        """
        return reads.read_blobs(self.handle.table, blob_column, reads.choose(ids, addresses, indices))

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: str,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Read byte ranges of blobs.

        Args:
            blob_column: A blob column.
            requests: (row, offset, length) of each range. Offset and length are in bytes. A row may occur repeatedly.
            selector: Meaning of the rows in `requests`: "ids", "addresses" or "indices".
            io_buffer_size: Without effect: nearby ranges are always read together.
            preserve_order: Without effect: the result is always in the order of the requests.

        Returns:
            (request index, row address, bytes) of each range, in the order of the requests. The bytes are None if the
            blob is null.

        Raises:
            InvalidInputError: The blob column or a row does not exist, or a range exceeds its blob.
        """
        return reads.read_ranges(self.handle.table, blob_column, requests, selector)
