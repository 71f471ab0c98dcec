"""The registry of codecs: maps the description of an encoding to the codec that reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from lance_duck import lazy
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codecs.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_duck.encoding.codecs.constant import Constant
from lance_duck.encoding.codecs.fixed_size_list import FixedSizeListCodec
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.fsst import Fsst
from lance_duck.encoding.codecs.general import General
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

if TYPE_CHECKING:
    from lance_duck.encoding.codecs import byte_stream_split, offset_variable, packed_runs, packed_struct, rle
else:
    byte_stream_split, offset_variable = lazy.modules(
        globals(), "lance_duck.encoding.codecs", "byte_stream_split", "offset_variable"
    )
    packed_runs, packed_struct, rle = lazy.modules(
        globals(), "lance_duck.encoding.codecs", "packed_runs", "packed_struct", "rle"
    )


def codec_from_proto(encoding: pb.CompressiveEncoding) -> Codec:
    """Return the codec for `encoding` and the encodings inside it.

    Raises:
        CorruptError: The description is empty or contradicts itself.
        UnsupportedError: 2.x files do not use this encoding, or this combination of encodings.
    """
    kind = encoding.WhichOneof("compression")
    if kind is None:
        raise CorruptError("the encoding is missing", where="page encoding", expected="a member of CompressiveEncoding")
    if kind not in READERS:
        raise UnsupportedError("the encoding is unknown", where="page encoding", found=kind)
    return READERS[kind](getattr(encoding, kind))


def _rle(message: pb.Rle) -> Codec:
    parts = (message.values, message.run_lengths)
    if all(part.WhichOneof("compression") in ("flat", None) for part in parts):
        return rle.Rle.from_proto(message)
    return packed_runs.PackedRuns.from_proto(message, codec_from_proto)


def _variable(message: pb.Variable) -> Codec:
    if message.offsets.WhichOneof("compression") in ("flat", None):
        return Variable.from_proto(message)
    return offset_variable.OffsetVariable.from_proto(message, codec_from_proto)


READERS: Final[dict[str, Callable[[Any], Codec]]] = {
    "flat": Flat.from_proto,
    "variable": _variable,
    "fsst": lambda message: Fsst.from_proto(message, codec_from_proto),
    "rle": _rle,
    "general": lambda message: General.from_proto(message, codec_from_proto),
    "byte_stream_split": lambda message: byte_stream_split.ByteStreamSplit.from_proto(message),
    "fixed_size_list": lambda message: FixedSizeListCodec.from_proto(message, codec_from_proto),
    "packed_struct": lambda message: packed_struct.PackedStructCodec.from_proto(message, codec_from_proto),
    "variable_packed_struct": lambda message: packed_struct.VariablePackedStruct.from_proto(message, codec_from_proto),
    "constant": Constant.from_proto,
    "inline_bitpacking": InlineBitpacking.from_proto,
    "out_of_line_bitpacking": OutOfLineBitpacking.from_proto,
}
