"""Base class of fixed-width codecs that work on chunks. A block is encoded as one chunk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, FixedWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codec_checks import no_form, one_chunk
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.kernels.memory import Bytes


class ChunkCodec(ABC):
    """A `Codec` with one buffer per chunk. It cannot encode single values.

    Attributes:
        name: Name of the encoding, for errors.
    """

    __slots__ = ()

    name: ClassVar[str]

    @property
    def num_buffers(self) -> int:
        """Always 1."""
        return 1

    @abstractmethod
    def decode_chunks(self, chunks: Chunks) -> FixedWidth:
        """See `Codec.decode_chunks`."""

    def decode_block(self, buffer: Bytes, count: int) -> FixedWidth:
        """Return the values of one buffer."""
        return self.decode_chunks(one_chunk(buffer, count))

    def decode_blocks(self, chunks: Chunks) -> FixedWidth:
        """Return the values, like `decode_chunks`."""
        return self.decode_chunks(chunks)

    def decode_values(self, values: Block) -> Block:
        """Raise UnsupportedError: single values cannot be encoded."""
        raise no_form(self.name, "per-value")

    @abstractmethod
    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """See `Codec.encode_chunks`."""

    def encode_block(self, block: Block) -> Bytes:
        """Return all values as one chunk."""
        return self.encode_chunks(block, np.array([block.count], np.int64))[0][0]

    def encode_values(self, block: Block) -> Block:
        """Raise UnsupportedError: single values cannot be encoded."""
        raise no_form(self.name, "per-value")
