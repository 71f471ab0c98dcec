"""Compressed values: chunk buffers, and the description of their encoding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings21_pb2 as pb

ChunkBuffer = tuple[Bytes, NDArray[np.int64]]
"""One buffer of all k chunks: the chunks' bytes joined (uint8), and the end of each chunk (int64 (k,))."""


@dataclass(frozen=True, slots=True)
class DictionaryBuffer:
    """The dictionary of a page.

    Attributes:
        encoding: Encoding of the values.
        data: uint8, the compressed values.
        count: Number of values, 1 or more.
    """

    encoding: pb.CompressiveEncoding
    data: Bytes
    count: int


@dataclass(frozen=True, slots=True)
class MiniBlockValues:
    """The values of a miniblock page, cut into chunks and compressed.

    Attributes:
        encoding: Encoding of the values. With a dictionary, it is the encoding of the indices.
        counts: int64 (k,), number of values of each chunk, k >= 1; a power of two in all but the last.
        buffers: The value buffers, in order.
        dictionary: Distinct values to which the indices refer, or None.
    """

    encoding: pb.CompressiveEncoding
    counts: NDArray[np.int64]
    buffers: tuple[ChunkBuffer, ...]
    dictionary: DictionaryBuffer | None = None

    @property
    def num_buffers(self) -> int:
        """Number of value buffers in a chunk."""
        return len(self.buffers)
