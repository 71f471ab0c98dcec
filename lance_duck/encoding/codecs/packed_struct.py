"""Packed structs: the fields of a row next to each other.

Fixed: the size of each field is a whole number of bytes. A row consists of its fields in order. Rows are flat values.

Variable (full zip only): a row is a variable-width value. It consists of its fields in order:

    size            field
    bits / 8        a field of fixed width
    4 or 8          a field of variable width: its length
    length                                     and its bytes

Each value in a row is compressed separately, with the encoding of its field. A row without bytes is null: its
fixed-width fields are zero, and its other fields are empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding import block as blocks
from lance_duck.encoding.block import Block, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codec_checks import fixed_values, no_form, variable_values
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.packed_struct import NULL_ROW, find_fields, place_fixed, place_variable
from lance_duck.kernels.status import check_status
from lance_duck.kernels.texts.take import gather_fixed, gather_variable
from lance_duck.kernels.texts.variable import ascending_within
from lance_duck.wire.pb import encodings21_pb2 as pb


@dataclass(frozen=True, slots=True)
class PackedStructCodec:
    """Encodes the rows of structs with fixed-width fields.

    Attributes:
        widths: Bytes of each field.
        rows: Flat codec of whole rows.
    """

    widths: tuple[int, ...]
    rows: Flat

    @classmethod
    def from_proto(
        cls, message: pb.PackedStruct, codec: Callable[[pb.CompressiveEncoding], Codec]
    ) -> PackedStructCodec:
        """Return the codec. Raises UnsupportedError for rows that are not flat, or fields that are not whole bytes."""
        rows = codec(message.values)
        if not isinstance(rows, Flat):
            raise no_form("packed struct", "nested")
        bits = list(message.bits_per_value)
        if not bits or any(b % 8 or not b for b in bits):
            raise UnsupportedError(
                "packed structs do not support fields of these widths", where="page encoding", found=f"{bits} bits"
            )
        if sum(bits) != rows.bits:
            raise CorruptError(
                "the width of packed rows differs from their fields",
                where="page encoding",
                expected=sum(bits),
                found=rows.bits,
            )
        return cls(tuple(b // 8 for b in bits), rows)

    @property
    def num_buffers(self) -> int:
        """Always 1."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> blocks.PackedStruct:
        """Return the fields of all chunks."""
        return self._split(self.rows.decode_chunks(chunks))

    def decode_block(self, buffer: Bytes, count: int) -> blocks.PackedStruct:
        """Return the fields of the rows in one buffer."""
        return self._split(self.rows.decode_block(buffer, count))

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError: levels are numbers."""
        raise no_form("packed struct", "level")

    def decode_values(self, values: Block) -> blocks.PackedStruct:
        """Return the fields of single rows."""
        return self._split(self.rows.decode_values(values))

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        bits = [8 * width for width in self.widths]
        return pb.CompressiveEncoding(packed_struct=pb.PackedStruct(bits_per_value=bits, values=self.rows.to_proto()))

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Return the rows of all chunks."""
        return self.rows.encode_chunks(self.encode_values(block), counts)

    def encode_block(self, block: Block) -> Bytes:
        """Return the rows in one buffer."""
        return self.rows.encode_block(self.encode_values(block))

    def encode_values(self, block: Block) -> FixedWidth:
        """Encode single rows."""
        fields = _fields(block, len(self.widths))
        stride = self.rows.bits // 8
        out = np.empty(block.count * stride, np.uint8)
        places = np.arange(block.count, dtype=np.int64) * stride
        for field, width in zip(fields, self.widths, strict=True):
            place_fixed(readonly(fixed_values(field, width * 8, "packed struct").data), width, places, out)
        return FixedWidth(self.rows.bits, out, block.count)

    def _split(self, rows: FixedWidth) -> blocks.PackedStruct:
        stride = self.rows.bits // 8
        table = rows.data[: rows.count * stride].reshape(rows.count, stride)
        fields: list[Block] = []
        place = 0
        for width in self.widths:
            values = np.ascontiguousarray(table[:, place : place + width].view(_row_dtype(width)))
            fields.append(FixedWidth(width * 8, values.view(np.uint8).reshape(-1), rows.count))
            place += width
        return blocks.PackedStruct(tuple(fields), rows.count)


def _row_dtype(width: int) -> np.dtype[Any]:
    """Return a dtype of `width` bytes that numpy copies efficiently."""
    return np.dtype(f"u{width}") if width in (1, 2, 4, 8) else np.dtype(f"V{width}")


@dataclass(frozen=True, slots=True)
class PackedField:
    """A field of a variable packed struct.

    Attributes:
        fixed: Bytes of a value, or 0 if each value is preceded by its length.
        length: Bytes of the length, 4 or 8, or 0 if there is no length.
        codec: Codec of the values.
    """

    fixed: int
    length: int
    codec: Codec


@dataclass(frozen=True, slots=True)
class VariablePackedStruct:
    """Struct rows with variable-width fields.

    Attributes:
        fields: The fields, in order.
    """

    fields: tuple[PackedField, ...]

    @classmethod
    def from_proto(
        cls, message: pb.VariablePackedStruct, codec: Callable[[pb.CompressiveEncoding], Codec]
    ) -> VariablePackedStruct:
        """Return the codec.

        Raises:
            CorruptError: A field does not have a layout.
            UnsupportedError: A width is not a whole number of bytes.
        """
        if not message.fields:
            raise CorruptError("the variable packed struct does not have fields", where="page encoding")
        return cls(tuple(_field(field, codec(field.value)) for field in message.fields))

    @property
    def num_buffers(self) -> int:
        """Always 1."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError: rows can only be encoded one by one."""
        raise no_form("variable packed struct", "miniblock")

    def decode_block(self, buffer: Bytes, count: int) -> Block:
        """Raise UnsupportedError: rows can only be encoded one by one."""
        raise no_form("variable packed struct", "block")

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError: rows can only be encoded one by one."""
        raise no_form("variable packed struct", "level")

    def decode_values(self, values: Block) -> blocks.PackedStruct:
        """Return the fields of single rows, each decoded by its own codec."""
        rows = variable_values(values, "variable packed struct")
        data = readonly(rows.data)
        if not ascending_within(readonly(rows.offsets), len(data)):
            raise CorruptError("offsets do not ascend, or exceed their data", where="variable packed struct encoding")
        fixed = np.array([field.fixed for field in self.fields], np.int64)
        lengths = np.array([field.length for field in self.fields], np.int64)
        starts = np.empty((len(self.fields), rows.count), np.int64)
        sizes = np.empty_like(starts)
        status = find_fields(data, rows.offsets.astype(np.int64), fixed, lengths, starts, sizes)
        check_status(status, "variable packed struct", "row")
        columns = zip(self.fields, starts, sizes, strict=True)
        fields = tuple(field.codec.decode_values(_gather(data, field, *place)) for field, *place in columns)
        return blocks.PackedStruct(fields, rows.count)

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        message = pb.VariablePackedStruct()
        for field in self.fields:
            if field.fixed:
                message.fields.add(value=field.codec.to_proto(), bits_per_value=field.fixed * 8)
            else:
                message.fields.add(value=field.codec.to_proto(), bits_per_length=field.length * 8)
        return pb.CompressiveEncoding(variable_packed_struct=message)

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Raise UnsupportedError: rows can only be encoded one by one."""
        raise no_form("variable packed struct", "miniblock")

    def encode_block(self, block: Block) -> Bytes:
        """Raise UnsupportedError: rows can only be encoded one by one."""
        raise no_form("variable packed struct", "block")

    def encode_values(self, block: Block) -> VariableWidth:
        """Encode single rows, each field by its own codec."""
        columns = zip(self.fields, _fields(block, len(self.fields)), strict=True)
        values = [(field, field.codec.encode_values(values)) for field, values in columns]
        sizes = np.zeros(block.count, np.int64)
        for field, encoded in values:
            sizes += field.fixed or field.length + np.diff(variable_values(encoded, "variable packed struct").offsets)
        offsets = np.zeros(block.count + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        out, places = np.empty(int(offsets[-1]), np.uint8), offsets[:-1].copy()
        for field, encoded in values:
            if isinstance(encoded, VariableWidth):
                place_variable(readonly(encoded.data), readonly(encoded.offsets), field.length, places, out)
            else:
                fixed = fixed_values(encoded, field.fixed * 8, "variable packed struct")
                place_fixed(readonly(fixed.data), field.fixed, places, out)
        return VariableWidth(offsets.astype(np.int32) if len(out) <= MAX_INT32 else offsets, out)


def _fields(block: Block, count: int) -> tuple[Block, ...]:
    """Return the fields of `block` if it is a packed struct of `count` fields. Otherwise, raises CorruptError."""
    if not isinstance(block, blocks.PackedStruct) or len(block.fields) != count:
        raise CorruptError("values are not packed structs", where="packed struct encoding", expected=f"{count} fields")
    return block.fields


def _field(message: pb.VariablePackedStruct.FieldEncoding, codec: Codec) -> PackedField:
    kind = message.WhichOneof("layout")
    if kind is None:
        raise CorruptError(
            "a field does not have a layout", where="page encoding", expected="bits_per_value or bits_per_length"
        )
    if kind == "bits_per_length":
        if message.bits_per_length not in (32, 64):
            raise UnsupportedError(
                "the length width is not supported",
                where="page encoding",
                expected="32 or 64",
                found=message.bits_per_length,
            )
        return PackedField(0, message.bits_per_length // 8, codec)
    bits = message.bits_per_value
    if not 0 < bits <= 1 << 34 or bits % 8:
        raise UnsupportedError(
            "packed structs do not support fields of this width", where="page encoding", found=f"{bits} bits"
        )
    return PackedField(bits // 8, 0, codec)


def _gather(data: Bytes, field: PackedField, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Block:
    """Return the values of one field, whose offsets `find_fields` has checked."""
    count = len(starts)
    if field.fixed:
        present = starts != NULL_ROW
        out = np.empty(count * field.fixed, np.uint8)
        if present.all():
            gather_fixed(data, starts, field.fixed, out)
        else:
            out[:] = 0
            result = np.empty(int(present.sum()) * field.fixed, np.uint8)
            gather_fixed(data, starts[present], field.fixed, result)
            out.reshape(count, field.fixed)[present] = result.reshape(-1, field.fixed)
        return FixedWidth(field.fixed * 8, out, count)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    gather_variable(data, starts, offsets, out)
    return VariableWidth(offsets, out)
