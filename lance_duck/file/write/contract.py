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
"""Encodes rows that are already set apart, in any thread: one page, or a few."""

Pages = list[tuple[int, EncodedPage | Deferred]]
"""Pages to be written in this order, each with its physical column, counted from the first of the field."""


class Space(Protocol):
    """Where column writers put bytes that are not pages: the bytes of blobs. Safe to use from several threads."""

    @property
    def blobs(self) -> BlobOptions:
        """What is asked of blobs."""

    def append(self, data: Buffer) -> int:
        """Write a buffer into the data file now, at a multiple of 64; returns its position in the file."""

    def sidecar(self) -> tuple[int, Sink]:
        """Begin a new file beside the data file: its blob id, from 1 upwards, and where its bytes go.

        The new file appears with the data file, or not at all; the caller closes it.
        """


class ColumnWriter(Protocol):
    """Encodes one top-level field of a file. Used by one thread at a time, which need not always be the same."""

    @property
    def num_columns(self) -> int:
        """Physical columns of the field."""

    @property
    def waiting_bytes(self) -> int:
        """Bytes of values that wait for their pages to be full, about."""

    def write(self, array: pa.Array) -> Pages:
        """Take rows of the field's storage type; returns the pages that are full.

        The array may be kept until its page is full. First rows of pages count from the start of the file.
        """

    def finish(self) -> Pages:
        """Return the pages of the rows that are left."""


def page_bytes(num_columns: int, data_cache_bytes: int | None = None, max_page_bytes: int | None = None) -> int:
    """Return the bytes of values after which a page of a column is cut.

    Args:
        num_columns: Top-level columns of the file.
        data_cache_bytes: What all of them may keep together; None: 8 MiB each.
        max_page_bytes: Most bytes of a page; None: 32 MiB.

    Raises:
        InvalidInputError: A limit below 1.
    """
    for name, limit in (("data_cache_bytes", data_cache_bytes), ("max_page_bytes", max_page_bytes)):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidInputError(name, expected="a number of at least 1", found=repr(limit))
    each = PAGE_BYTES if data_cache_bytes is None else max(1, data_cache_bytes // max(1, num_columns))
    return min(each, max_page_bytes or MAX_PAGE_BYTES)


def num_bytes(data: pa.Array | pa.RecordBatch) -> int:
    """Return the bytes that the values of an array or a batch take; about, where views of texts cannot be measured."""
    try:
        return int(data.nbytes)
    except pa.ArrowTypeError:  # views, before pyarrow 23
        return int(data.get_total_buffer_size())
