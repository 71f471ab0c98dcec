"""General compression and FSST, as 2.0 pages use them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_duck.encoding.block import Bytes
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.fsst import Fsst
from lance_duck.encoding.registry import codec_from_proto
from lance_duck.errors import CorruptError
from lance_duck.wire.pb import encodings21_pb2 as pb21


def decompress(scheme: str, packed: Bytes) -> Bytes:
    """The bytes of a compressed buffer."""
    head = 8 if scheme == "zstd" else 4
    size = int.from_bytes(packed[:head].tobytes(), "little")
    if size > len(packed) * 1000:
        raise CorruptError("size")
    codec = pa.Codec("zstd" if scheme == "zstd" else "lz4_raw")
    return np.frombuffer(codec.decompress(packed[head:].tobytes(), size), np.uint8)


def fsst_codec(table: bytes) -> Codec:
    """The codec whose `decode_values` expands byte strings with a page's symbol table.

    Raises:
        CorruptError: It is no symbol table.
    """
    offsets = pb21.CompressiveEncoding(flat=pb21.Flat(bits_per_value=64))
    plain = pb21.CompressiveEncoding(variable=pb21.Variable(offsets=offsets))
    return Fsst.from_proto(pb21.Fsst(symbol_table=table, values=plain), codec_from_proto)
