"""Constant: items that are all null. Nothing is stored.

The encoding occurs only inside fixed-size lists, whose count and dimension give the number of items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codec_checks import no_form
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings21_pb2 as pb


@dataclass(frozen=True, slots=True)
class Constant:
    """The codec of items that are all null: nothing is stored."""

    @classmethod
    def from_proto(cls, message: pb.Constant) -> Constant:
        """Return the codec. Raises UnsupportedError for a value, because its page would have a constant layout."""
        if message.HasField("value"):
            raise no_form("constant", "valued")
        return cls()

    @property
    def num_buffers(self) -> int:
        """Always 0."""
        return 0

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError."""
        raise no_form("constant", "miniblock")

    def decode_block(self, buffer: Bytes, count: int) -> Block:
        """Raise UnsupportedError."""
        raise no_form("constant", "block")

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError."""
        raise no_form("constant", "level")

    def decode_values(self, values: Block) -> Block:
        """Raise UnsupportedError."""
        raise no_form("constant", "per-value")

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        return pb.CompressiveEncoding(constant=pb.Constant())

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Raise UnsupportedError."""
        raise no_form("constant", "miniblock")

    def encode_block(self, block: Block) -> Bytes:
        """Raise UnsupportedError."""
        raise no_form("constant", "block")

    def encode_values(self, block: Block) -> Block:
        """Raise UnsupportedError."""
        raise no_form("constant", "per-value")
