"""Pages: the location of their bytes, and the interface of their readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block
from lance_duck.encoding.layouts.layers import Layers
from lance_duck.errors import CorruptError
from lance_duck.store.request import ByteRange, ByteSource, Request

Extent = tuple[int, int]
Rows = slice | NDArray[np.int64]
Levels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class EncodingDescription:
    """A packed protobuf message: its type url and its bytes."""

    type_url: str
    value: bytes

    @property
    def name(self) -> str:
        """Full name of the message, such as `lance.encodings21.PageLayout`."""
        return self.type_url.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Page:
    """Location and encoding of a page.

    Attributes:
        source: The file.
        where: Name for messages.
        buffers: (offset, size) of each buffer in the file, already checked against the file size.
        num_rows: Declared number of rows. For fixed-size lists of structs in 2.2, declared number of items.
        first_row: First top-level row.
        encoding: Description of the bytes.
    """

    source: ByteSource
    where: str
    buffers: tuple[Extent, ...]
    num_rows: int
    first_row: int
    encoding: EncodingDescription

    def buffer_size(self, index: int) -> int:
        """Return the number of bytes of a buffer.

        Raises:
            CorruptError: The index is beyond the page's last buffer.
        """
        if index >= len(self.buffers):
            raise CorruptError(
                "the page has too few buffers",
                where=self.where,
                expected=f"at least {index + 1}",
                found=len(self.buffers),
            )
        return self.buffers[index][1]

    def byte_range(self, index: int, start: int = 0, size: int | None = None) -> ByteRange:
        """Return the byte range of `size` bytes from `start` in a buffer. By default, all remaining bytes.

        Raises:
            CorruptError: The buffer is missing or too short.
        """
        whole = self.buffer_size(index)
        size = whole - start if size is None else size
        if start < 0 or size < 0 or start + size > whole:
            raise CorruptError(
                f"buffer {index} is too short", where=self.where, expected=f"{size} bytes at {start}", found=whole
            )
        return ByteRange(self.source, self.buffers[index][0] + start, size)


@dataclass(frozen=True, slots=True)
class Leaf:
    """Rows of a page: values of the innermost layer, and the levels of their structure.

    Attributes:
        block: A value for each visible slot, or None if all slots are null.
        rep: Repetition levels, or None if the layers do not include lists.
        def_: Definition levels as defined by `layers`, each <= layers.max_def, or None if all are 0.
        layers: Meaning of the levels on this page.
        num_slots: Number of visible slots of the innermost layer.
        num_rows: Number of rows.
    """

    block: Block | None
    rep: Levels | None
    def_: Levels | None
    layers: Layers
    num_slots: int
    num_rows: int


class PageReader(Protocol):
    """A reader of one page. Immutable except for caches; safe to use from several threads."""

    @property
    def num_rows(self) -> int:
        """Number of rows in the page."""

    @property
    def is_dictionary(self) -> bool:
        """Whether blocks are returned as `Dictionary`."""

    @property
    def is_prepared(self) -> bool:
        """Whether the page's tables have been read. They are needed to find the byte ranges of rows."""

    @property
    def has_levels(self) -> bool:
        """Whether slots may be null, or lists null or empty. Otherwise, each slot of the page has a value."""

    @property
    def has_item_validity(self) -> bool:
        """Whether items of fixed-size lists may be null. False if the description excludes null items."""

    def read(self, rows: Rows) -> Request[Leaf]:
        """Read rows, counted from the start of the page.

        Raises:
            CorruptError: The page contradicts itself.
        """

    def read_points(self, rows: NDArray[np.int64]) -> Leaf | None:
        """Read a few rows immediately, without a request, from a source that is not remote.

        Args:
            rows: int64, offsets from the start of the page, ascending; at least one row.

        Returns:
            The same as `read`, or None if the page does not support faster reads of a few rows.

        Raises:
            CorruptError: The page contradicts itself.
        """
