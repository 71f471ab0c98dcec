"""The registry of array encodings: maps the description of a 2.0 page to the tree that reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_duck.encoding.layouts.page import EncodingDescription
from lance_duck.encoding.v20.array import AllNulls, EncodedArray, SomeNulls
from lance_duck.encoding.v20.binary import Binary, FixedSizeBinary, FsstArray
from lance_duck.encoding.v20.bitpacked import bitpacked_from_proto
from lance_duck.encoding.v20.buffers import PageBuffers
from lance_duck.encoding.v20.compression import fsst_codec
from lance_duck.encoding.v20.dictionary import DictionaryArray
from lance_duck.encoding.v20.ends import NO_LIMIT, Ends
from lance_duck.encoding.v20.flat import ConstantArray, flat_from_proto
from lance_duck.encoding.v20.nested import FixedSizeListArray, PackedArrayField, PackedStructArray
from lance_duck.wire.pb import encodings20_pb2 as pb

MAX_CONSTANT = 64
PAGE_MESSAGE = "lance.encodings.ArrayEncoding"


@dataclass(frozen=True, slots=True)
class Context:
    """The facts that a reader needs about an array in addition to its encoding.

    Attributes:
        buffers: Buffers of the array's page.
        length: Number of values that the array must hold, or None if unknown before reading.
        arrow_type: Type of the values. It determines how dictionary indices and null slots are read.
    """

    buffers: PageBuffers
    length: int | None
    arrow_type: pa.DataType

    def of(self, length: int | None, arrow_type: pa.DataType | None = None) -> Context:
        """Return the context of a different array of the page, with this length and type."""
        return Context(self.buffers, length, self.arrow_type if arrow_type is None else arrow_type)


def parse_encoding(description: EncodingDescription, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Return the encoding of a page.

    Raises:
        CorruptError: The message is corrupt.
        UnsupportedError: The message is not a 2.0 array encoding.
    """
    if description.name != PAGE_MESSAGE:
        raise buffers.unsupported("2.0 files do not support this page encoding", description.name)
    try:
        return pb.ArrayEncoding.FromString(description.value)
    except DecodeError as error:
        raise buffers.corrupt("the page encoding is not a protobuf message") from error


def array_from_proto(encoding: pb.ArrayEncoding, context: Context) -> EncodedArray:
    """Return the tree that reads an array.

    Raises:
        CorruptError: The buffers cannot hold the values, or the description contradicts itself.
        UnsupportedError: 2.0 files do not use this encoding.
    """
    kind = encoding.WhichOneof("array_encoding")
    if kind is None:
        raise context.buffers.corrupt("the encoding is missing", expected="a member of ArrayEncoding")
    if kind not in READERS:
        raise context.buffers.unsupported("2.0 files do not support this encoding", kind)
    array = READERS[kind](getattr(encoding, kind), context)
    if context.length is not None and array.capacity is not None and context.length > array.capacity:
        raise context.buffers.corrupt(
            f"the {kind} array has more values than its bytes can hold",
            expected=f"at most {array.capacity}",
            found=context.length,
        )
    return array


def list_from_proto(encoding: pb.ArrayEncoding, context: Context) -> Ends:
    """Return the reader of list end offsets. The description's `num_items` is their maximum.

    Raises:
        CorruptError: The encoding is not a list encoding, or contradicts itself.
    """
    if encoding.WhichOneof("array_encoding") != "list":
        raise context.buffers.corrupt(
            "the page of a list column has the wrong encoding",
            expected="list",
            found=encoding.WhichOneof("array_encoding"),
        )
    message = encoding.list
    if message.num_items > NO_LIMIT:
        raise context.buffers.corrupt("the page has too many list items", found=message.num_items)
    offsets = array_from_proto(message.offsets, context.of(context.length, pa.uint64()))
    return Ends(offsets, _adjustment(message.null_offset_adjustment, context), message.num_items)


def _nullable(message: pb.Nullable, context: Context) -> EncodedArray:
    kind = message.WhichOneof("nullability")
    if kind == "all_nulls":
        return AllNulls()
    if kind == "no_nulls":
        return array_from_proto(message.no_nulls.values, context)
    if kind == "some_nulls":
        validity = array_from_proto(message.some_nulls.validity, context.of(context.length, pa.bool_()))
        return SomeNulls(validity, array_from_proto(message.some_nulls.values, context))
    raise context.buffers.corrupt("the nullable encoding does not have a kind")


def _fixed_size_list(message: pb.FixedSizeList, context: Context) -> EncodedArray:
    dimension = message.dimension
    storage = _storage(context.arrow_type)
    if dimension < 1 or not pa.types.is_fixed_size_list(storage) or storage.list_size != dimension:
        raise context.buffers.corrupt(
            "the fixed-size list does not match its column", expected=storage, found=f"lists of {dimension}"
        )
    if message.has_validity:
        raise context.buffers.unsupported("fixed-size lists in 2.0 files cannot store item validity", "has_validity")
    length = _product(context, dimension)
    items = array_from_proto(message.items, context.of(length, storage.value_type))
    return FixedSizeListArray(items, dimension, storage.value_type)


def _binary(message: pb.Binary, context: Context) -> EncodedArray:
    ends = array_from_proto(message.indices, context.of(context.length, pa.uint64()))
    data = array_from_proto(message.bytes, context.of(None, pa.uint8()))
    limit = NO_LIMIT if data.capacity is None else data.capacity
    return Binary(Ends(ends, _adjustment(message.null_adjustment, context), limit), data)


def _fsst(message: pb.Fsst, context: Context) -> EncodedArray:
    return FsstArray(array_from_proto(message.binary, context), fsst_codec(message.symbol_table))


def _fixed_size_binary(message: pb.FixedSizeBinary, context: Context) -> EncodedArray:
    width = message.byte_width
    if width < 1:
        raise context.buffers.corrupt(
            "the byte width of a fixed-size binary is invalid", expected="at least 1 byte", found=width
        )
    inner = pb.ArrayEncoding()
    inner.CopyFrom(message.bytes)
    if inner.WhichOneof("array_encoding") == "flat" and inner.flat.bits_per_value == 8 * width:
        inner.flat.bits_per_value = 8
    length = _product(context, width)
    return FixedSizeBinary(array_from_proto(inner, context.of(length, pa.uint8())), width)


def _dictionary(message: pb.Dictionary, context: Context) -> EncodedArray:
    storage = _storage(context.arrow_type)
    is_dictionary = pa.types.is_dictionary(storage)
    value_type = storage.value_type if is_dictionary else storage
    indices = array_from_proto(message.indices, context.of(context.length, pa.uint64()))
    items = array_from_proto(message.items, context.of(message.num_dictionary_items, value_type))
    return DictionaryArray(indices, items, message.num_dictionary_items, zero_is_null=not is_dictionary)


def _packed_struct(message: pb.PackedStruct, context: Context) -> EncodedArray:
    fields = tuple(_packed_field(inner, context) for inner in message.inner)
    array = PackedStructArray(fields, context.buffers.find(message.buffer))
    if array.row_size < 1:
        raise context.buffers.corrupt("the packed struct does not have fields with values", found=len(fields))
    return array


def _packed_field(encoding: pb.ArrayEncoding, context: Context) -> PackedArrayField:
    kind = encoding.WhichOneof("array_encoding")
    if kind == "nullable" and encoding.nullable.WhichOneof("nullability") == "no_nulls":
        return _packed_field(encoding.nullable.no_nulls.values, context)
    if kind == "fixed_size_list":
        item = _packed_field(encoding.fixed_size_list.items, context)
        if item.dimension is None:
            return PackedArrayField(item.bits, encoding.fixed_size_list.dimension)
    if kind == "flat" and encoding.flat.bits_per_value % 8 == 0 and encoding.flat.bits_per_value > 0:
        return PackedArrayField(encoding.flat.bits_per_value)
    raise context.buffers.unsupported("packed structs in 2.0 files do not support this field", kind)


def _constant(message: pb.Constant, context: Context) -> EncodedArray:
    if not 0 < len(message.value) <= MAX_CONSTANT:
        raise context.buffers.corrupt(
            "the length of the constant is invalid", expected=f"1 to {MAX_CONSTANT} bytes", found=len(message.value)
        )
    return ConstantArray(message.value)


def _product(context: Context, factor: int) -> int | None:
    if context.length is None:
        return None
    if context.length * factor > NO_LIMIT:
        raise context.buffers.corrupt("the page has too many values", found=f"{context.length} times {factor}")
    return context.length * factor


def _adjustment(value: int, context: Context) -> int:
    if value < 1:
        raise context.buffers.corrupt("the adjustment of null ends is invalid", expected="at least 1", found=value)
    return value


def _storage(arrow_type: pa.DataType) -> pa.DataType:
    while isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    return arrow_type


READERS: Final[dict[str, Callable[[Any, Context], EncodedArray]]] = {
    "flat": lambda message, context: flat_from_proto(message, context.buffers),
    "nullable": _nullable,
    "fixed_size_list": _fixed_size_list,
    "binary": _binary,
    "dictionary": _dictionary,
    "fsst": _fsst,
    "packed_struct": _packed_struct,
    "bitpacked": lambda message, context: bitpacked_from_proto(message, context.buffers),
    "bitpacked_for_non_neg": lambda message, context: bitpacked_from_proto(message, context.buffers),
    "fixed_size_binary": _fixed_size_binary,
    "constant": _constant,
}
