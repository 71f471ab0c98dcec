"""General compression and FSST, as 2.0 pages use them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_duck.encoding.block import Bytes
from lance_duck.encoding.codec import Codec
from lance_duck.errors import CorruptError, UnsupportedError


def decompress(scheme: str, packed: Bytes) -> Bytes:
    """The bytes of a compressed buffer."""
    head = 8 if scheme == "zstd" else 4
    size = int.from_bytes(packed[:head].tobytes(), "little")
    if size > len(packed) * 1000:
        raise CorruptError("size")
    codec = pa.Codec("zstd" if scheme == "zstd" else "lz4_raw")
    return np.frombuffer(codec.decompress(packed[head:].tobytes(), size), np.uint8)


def fsst_codec(table: bytes) -> Codec:
    """The codec of a symbol table."""
    raise UnsupportedError("fsst")
