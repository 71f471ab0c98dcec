"""Constant: items that are all null, of which nothing is stored.

It stands only inside fixed size lists, whose validity says how many items there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, Bytes
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.encoding.forms import no_form
from lance_duck.wire.pb import encodings21_pb2 as pb


@dataclass(frozen=True, slots=True)
class Constant:
    """Null, over and over."""

    @classmethod
    def from_proto(cls, message: pb.Constant) -> Constant:
        """Raises UnsupportedError for a constant that has a value: such pages have a constant layout."""
        if message.HasField("value"):
            raise no_form("constant", "valued")
        return cls()

    @property
    def num_buffers(self) -> int:
        """0."""
        return 0

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Raises UnsupportedError."""
        raise no_form("constant", "miniblock")

    def decode_block(self, buffer: Bytes, count: int) -> Block:
        """Raises UnsupportedError."""
        raise no_form("constant", "block")

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Raises UnsupportedError."""
        raise no_form("constant", "level")

    def decode_values(self, values: Block) -> Block:
        """Raises UnsupportedError."""
        raise no_form("constant", "per-value")

    def to_proto(self) -> pb.CompressiveEncoding:
        """The description of this encoding."""
        return pb.CompressiveEncoding(constant=pb.Constant())

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Raises UnsupportedError."""
        raise no_form("constant", "miniblock")

    def encode_block(self, block: Block) -> Bytes:
        """Raises UnsupportedError."""
        raise no_form("constant", "block")

    def encode_values(self, block: Block) -> Block:
        """Raises UnsupportedError."""
        raise no_form("constant", "per-value")
