"""Protocols between the writer of a file and the writers of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.errors import InvalidInputError
from lance_duck.file.costs import MAX_PAGE_BYTES, PAGE_BYTES
from lance_duck.file.write.blob_options import BlobOptions
from lance_duck.store import Buffer, Sink

Deferred = Callable[[], Sequence[EncodedPage]]
"""A function that encodes rows into one or a few pages. Any thread may call it."""

Pages = list[tuple[int, EncodedPage | Deferred]]
"""Pages in the order of writing. Each has a physical column number, relative to the field's first column."""


class Space(Protocol):
    """The space for column bytes outside pages, used for blobs. Safe to use from several threads."""

    @property
    def blobs(self) -> BlobOptions:
        """Options for blobs."""

    def append(self, data: Buffer) -> int:
        """Write a buffer to the data file immediately, at a multiple of 64. Returns its position in the file."""

    def sidecar(self) -> tuple[int, Sink]:
        """Create a sidecar, and return its blob id, from 1 upwards, and its sink.

        The sidecar is discarded if the data file is not finished. The caller closes the sink.
        """


class ColumnWriter(Protocol):
    """A writer of one top-level field of a file. Used by one thread at a time, but not always by the same thread."""

    @property
    def num_columns(self) -> int:
        """Number of physical columns of the field."""

    @property
    def waiting_bytes(self) -> int:
        """Approximate number of bytes of values that wait for full pages."""

    def write(self, array: pa.Array) -> Pages:
        """Add rows of the field's storage type, and return the pages that are full.

        The writer may keep the array until its page is full. The first row of a page is relative to the start of the
        file.
        """

    def finish(self) -> Pages:
        """Return the pages of the remaining rows."""


def page_bytes(num_columns: int, data_cache_bytes: int | None = None, max_page_bytes: int | None = None) -> int:
    """Return the page size of each column, in bytes of values.

    Args:
        num_columns: Number of top-level columns of the file.
        data_cache_bytes: Maximum size of buffered values over all columns, in bytes. By default 8 MiB for each column.
        max_page_bytes: Maximum size of a page's values, in bytes. By default 32 MiB.

    Raises:
        InvalidInputError: A limit is below 1.
    """
    for name, limit in (("data_cache_bytes", data_cache_bytes), ("max_page_bytes", max_page_bytes)):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidInputError(name, expected="a number of at least 1", found=repr(limit))
    each = PAGE_BYTES if data_cache_bytes is None else max(1, data_cache_bytes // max(1, num_columns))
    return min(each, max_page_bytes or MAX_PAGE_BYTES)


def num_bytes(data: pa.Array | pa.RecordBatch) -> int:
    """Return the size of the values of an array or a batch, in bytes; an estimate if string views are unmeasurable."""
    try:
        return int(data.nbytes)
    except pa.ArrowTypeError:  # pyarrow before 23 cannot measure views
        return int(data.get_total_buffer_size())
