"""Encoded pages, and the levels of pages before encoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from lance_duck.encoding.layouts.layers import Layers
from lance_duck.encoding.layouts.page import EncodingDescription, Levels
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings21_pb2 as pb

PAGE_LAYOUT_URL = "/lance.encodings21.PageLayout"


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A page to be written.

    Attributes:
        buffers: uint8 arrays, in order. They are views of the values if the page stores the values unchanged.
        encoding: Description of the bytes.
        num_rows: Number of rows. For fixed-size lists of structs, number of structs.
        first_row: First top-level row of the page in its column.
    """

    buffers: tuple[Bytes, ...]
    encoding: EncodingDescription
    num_rows: int
    first_row: int

    @property
    def num_bytes(self) -> int:
        """Number of bytes of all buffers."""
        return sum(len(buffer) for buffer in self.buffers)


@dataclass(frozen=True, slots=True)
class PageLevels:
    """The levels of a page, as defined by its layers.

    Attributes:
        layers: Meaning of the levels.
        rep: Repetition levels, uint8, or None if the layers do not include lists.
        def_: Definition levels, uint8, or None if all are 0.
        num_slots: Number of entries that have a value.
        num_rows: Number of rows.
    """

    layers: Layers
    rep: Levels | None
    def_: Levels | None
    num_slots: int
    num_rows: int

    @property
    def kinds(self) -> list[pb.RepDefLayer]:
        """The layers in the form of a page description."""
        return [cast("pb.RepDefLayer", kind) for kind in self.layers.kinds]

    @property
    def count(self) -> int:
        """Number of entries."""
        return self.num_slots if self.rep is None else len(self.rep)

    @property
    def has_hidden(self) -> bool:
        """Whether there may be entries without a value."""
        return self.def_ is not None and self.layers.max_visible < self.layers.max_def


def page_encoding(layout: pb.PageLayout) -> EncodingDescription:
    """Return the description of a page."""
    return EncodingDescription(PAGE_LAYOUT_URL, layout.SerializeToString())
