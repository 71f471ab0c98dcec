from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.encoding.block import FixedSizeList, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.numbers import packed_struct as kernels
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]
Field = pb.VariablePackedStruct.FieldEncoding


def flat(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def variable(bits: int = 32) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(variable=pb.Variable(offsets=flat(bits)))


def packed(bits: Sequence[int], total: int | None = None) -> Codec:
    message = pb.PackedStruct(bits_per_value=bits, values=flat(sum(bits) if total is None else total))
    return codec_from_proto(pb.CompressiveEncoding(packed_struct=message))


def variable_packed(*fields: Field) -> Codec:
    return codec_from_proto(pb.CompressiveEncoding(variable_packed_struct=pb.VariablePackedStruct(fields=fields)))


def rows(values: Sequence[bytes], skip: int = 2) -> VariableWidth:
    offsets = np.cumsum([skip, *map(len, values)]).astype(np.int32)
    return VariableWidth(offsets, np.frombuffer(b"\xee" * skip + b"".join(values), np.uint8))


def strings(block: VariableWidth) -> list[bytes]:
    return [block.data[a:b].tobytes() for a, b in pairwise(block.offsets.tolist())]


def test_rows_are_split_into_fields(make_chunks: Make) -> None:
    part = [struct.pack("<Hq3s", i, -i, bytes([i] * 3)) for i in range(4)]
    chunks = make_chunks([[b"".join(part[:3])], [part[3]]], [3, 1])
    block = packed([16, 64, 24]).decode_chunks(chunks)
    assert block.count == 4
    assert [f.bits for f in block.fields] == [16, 64, 24]
    assert block.fields[0].data.view("<u2").tolist() == [0, 1, 2, 3]
    assert block.fields[1].data.view("<i8").tolist() == [0, -1, -2, -3]
    assert block.fields[2].data.tobytes() == b"".join(bytes([i] * 3) for i in range(4))
    again = packed([16, 64, 24]).decode_values(FixedWidth(104, np.frombuffer(b"".join(part), np.uint8), 4))
    assert again.fields[1].data.tolist() == block.fields[1].data.tolist()


def test_truncated_packed_rows_are_corrupt(make_chunks: Make) -> None:
    with pytest.raises(CorruptError):
        packed([16, 64]).decode_chunks(make_chunks([[b"\0" * 19]], [2]))


def test_packed_descriptions_are_checked() -> None:
    with pytest.raises(CorruptError):
        packed([16, 64], total=72)
    for bits in ([1, 7], [], [0, 8]):
        with pytest.raises(UnsupportedError):
            packed(bits, total=8)
    nested = pb.PackedStruct(bits_per_value=[32], values=variable())
    with pytest.raises(UnsupportedError):
        codec_from_proto(pb.CompressiveEncoding(packed_struct=nested))


FIELDS = (
    Field(value=flat(16), bits_per_value=16),
    Field(value=variable(), bits_per_length=32),
    Field(value=variable(64), bits_per_length=64),
)


def row(number: int, first: bytes, second: bytes) -> bytes:
    return struct.pack("<HI", number, len(first)) + first + struct.pack("<Q", len(second)) + second


def test_fields_of_variable_width_are_found() -> None:
    block = variable_packed(*FIELDS).decode_values(rows([row(7, b"ab", b""), row(8, b"", b"c" * 50)]))
    assert block.fields[0].data.view("<u2").tolist() == [7, 8]
    assert strings(block.fields[1]) == [b"ab", b""]
    assert strings(block.fields[2]) == [b"", b"c" * 50]


def test_rows_without_bytes_are_zeros_and_empty() -> None:
    block = variable_packed(*FIELDS).decode_values(rows([b"", row(8, b"x", b"y"), b""]))
    assert block.count == 3
    assert block.fields[0].data.view("<u2").tolist() == [0, 8, 0]
    assert strings(block.fields[1]) == [b"", b"x", b""]


def test_each_field_is_decoded_by_its_codec() -> None:
    lists = pb.FixedSizeList(items_per_value=3, values=flat(8))
    field = Field(value=pb.CompressiveEncoding(fixed_size_list=lists), bits_per_value=24)
    inner = pb.CompressiveEncoding(variable_packed_struct=pb.VariablePackedStruct(fields=FIELDS))
    nested = Field(value=inner, bits_per_length=32)
    inside = row(1, b"p", b"q")
    block = variable_packed(field, nested).decode_values(rows([b"abc" + struct.pack("<I", len(inside)) + inside]))
    assert isinstance(block.fields[0], FixedSizeList)
    assert block.fields[0].items.data.tobytes() == b"abc"
    assert strings(block.fields[1].fields[2]) == [b"q"]


def test_broken_rows_are_corrupt() -> None:
    whole = row(7, b"abc", b"defg")
    codec = variable_packed(*FIELDS)
    for size in range(1, len(whole)):
        with pytest.raises(CorruptError):
            codec.decode_values(rows([whole, whole[:size]]))
    with pytest.raises(CorruptError, match="left"):
        codec.decode_values(rows([whole + b"!"]))
    for place in (2, 5, 9, 16):
        changed = bytearray(whole)
        changed[place] = 0xFF
        with pytest.raises(CorruptError):
            codec.decode_values(rows([bytes(changed)]))


def test_offsets_of_rows_are_checked() -> None:
    with pytest.raises(CorruptError):
        variable_packed(*FIELDS).decode_values(VariableWidth(np.array([0, 99], np.int64), np.zeros(9, np.uint8)))
    with pytest.raises(CorruptError):
        variable_packed(*FIELDS).decode_values(FixedWidth(8, np.zeros(9, np.uint8), 9))


def test_variable_packed_structs_are_full_zip_only(make_chunks: Make) -> None:
    codec = variable_packed(*FIELDS)
    for form in (
        lambda: codec.decode_chunks(make_chunks([[b""]], [0])),
        lambda: codec.decode_blocks(make_chunks([[b""]], [0])),
        lambda: codec.decode_block(np.zeros(0, np.uint8), 0),
    ):
        with pytest.raises(UnsupportedError, match="variable packed struct"):
            form()


def test_variable_packed_descriptions_are_checked() -> None:
    with pytest.raises(CorruptError):
        variable_packed()
    with pytest.raises(CorruptError):
        variable_packed(Field(value=flat(8)))
    for field in (Field(value=flat(8), bits_per_value=12), Field(value=variable(), bits_per_length=16)):
        with pytest.raises(UnsupportedError):
            variable_packed(field)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([(1, 0), (4, 0), (0, 4), (0, 8)]), min_size=1, max_size=3),
    st.lists(st.lists(st.sampled_from([0, 0, 0, 0, 1, 2, 255]), max_size=24).map(bytes), max_size=4),
)
def test_find_fields_equals_its_reference(fields: list[tuple[int, int]], values: list[bytes]) -> None:
    block = rows(values)
    fixed, lengths = (np.array(part, np.int64) for part in zip(*fields, strict=True))
    results = []
    for function in (kernels.find_fields, kernels.find_fields_reference):
        starts, sizes = (np.zeros((len(fields), len(values)), np.int64) for _ in range(2))
        status = function(block.data, block.offsets.astype(np.int64), fixed, lengths, starts, sizes)
        results.append((status, (starts.tolist(), sizes.tolist()) if status == 0 else None))
    assert results[0] == results[1]
