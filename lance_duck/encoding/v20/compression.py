"""General compression of single buffers in 2.0 pages, and FSST with one symbol table per page."""

from __future__ import annotations

import numpy as np

from lance_duck.encoding.block import VariableWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codecs.fsst import Fsst
from lance_duck.encoding.codecs.general import General
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.errors import CorruptError
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings21_pb2 as pb

_OFFSET_BITS = 64


def decompress(scheme: str, packed: Bytes) -> Bytes:
    """Return the bytes of a compressed buffer.

    Args:
        scheme: "zstd" or "lz4".
        packed: Raw length and compressed bytes (see `encoding.codecs.general`).

    Raises:
        CorruptError: The bytes do not match the scheme.
    """
    buffer = VariableWidth(np.array([0, len(packed)], np.int64), packed)
    values = General(scheme, Variable(_OFFSET_BITS)).decode_values(buffer)
    if not isinstance(values, VariableWidth):
        raise CorruptError("the compressed buffer does not decode to byte strings", where=f"{scheme} compression")
    return values.data


def fsst_codec(table: bytes) -> Codec:
    """Return the codec whose `decode_values` expands byte strings with a page's symbol table.

    Raises:
        CorruptError: The bytes are not a symbol table.
    """
    offsets = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=_OFFSET_BITS))
    plain = pb.CompressiveEncoding(variable=pb.Variable(offsets=offsets))
    return Fsst.from_proto(pb.Fsst(symbol_table=table, values=plain), codec_from_proto)
