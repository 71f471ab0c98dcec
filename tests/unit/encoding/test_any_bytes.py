"""A codec decodes arbitrary bytes or reports them as corrupt."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.encoding.block import Block, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.errors import CorruptError, FormatError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]
Encoding = pb.CompressiveEncoding


def flat(bits: int) -> Encoding:
    return Encoding(flat=pb.Flat(bits_per_value=bits))


def variable(bits: int) -> Encoding:
    return Encoding(variable=pb.Variable(offsets=flat(bits)))


def general(scheme: int, values: Encoding) -> Encoding:
    return Encoding(general=pb.General(compression=pb.BufferCompression(scheme=scheme), values=values))


def lists(values: Encoding, validity: bool) -> Encoding:
    return Encoding(fixed_size_list=pb.FixedSizeList(items_per_value=3, values=values, has_validity=validity))


TABLE = bytes([2, 0, 0, 1]) + b"TSSF" + b"abcdefgh" + b"x" + bytes(7) + bytes([8, 1])
FIELDS = [
    pb.VariablePackedStruct.FieldEncoding(value=flat(16), bits_per_value=16),
    pb.VariablePackedStruct.FieldEncoding(value=variable(32), bits_per_length=32),
]
ENCODINGS = {
    "bits": flat(1),
    "flat": flat(24),
    "inline bitpacking 8": Encoding(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=8)),
    "inline bitpacking 64": Encoding(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=64)),
    "out-of-line bitpacking": Encoding(
        out_of_line_bitpacking=pb.OutOfLineBitpacking(uncompressed_bits_per_value=16, values=flat(1))
    ),
    "rle": Encoding(rle=pb.Rle(values=flat(16), run_lengths=flat(8))),
    "variable 32": variable(32),
    "variable 64": variable(64),
    "fsst": Encoding(fsst=pb.Fsst(symbol_table=TABLE, values=variable(32))),
    "lz4": general(1, flat(8)),
    "lz4 rle": general(1, Encoding(rle=pb.Rle(values=flat(8), run_lengths=flat(8)))),
    "zstd": general(2, variable(32)),
    "byte stream split": Encoding(byte_stream_split=pb.ByteStreamSplit(values=flat(32))),
    "lists": lists(flat(8), validity=False),
    "lists of lists": lists(lists(flat(1), validity=True), validity=True),
    "packed struct": Encoding(packed_struct=pb.PackedStruct(bits_per_value=[8, 32], values=flat(40))),
    "variable packed struct": Encoding(variable_packed_struct=pb.VariablePackedStruct(fields=FIELDS)),
}

buffers = st.one_of(
    st.binary(max_size=80),
    st.lists(st.sampled_from([0, 0, 0, 1, 2, 8, 12, 16, 255]), max_size=600).map(bytes),
    st.integers(0, 3000).map(bytes),
)
counts = st.sampled_from([0, 1, 2, 3, 7, 8, 200, 1024, 1030, 1 << 31, 1 << 50, 1 << 63, -1])


def touch(block: Block) -> None:
    """Read all values of a block."""
    if isinstance(block, FixedWidth):
        assert len(block.data) == block.count * max(block.bits // 8, 1 if block.bits else 0)
        block.data.sum()
    elif isinstance(block, VariableWidth):
        assert 0 <= block.offsets[0] <= block.offsets[-1] <= len(block.data)
        assert (np.diff(block.offsets) >= 0).all()
        block.data.sum()


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_bytes_decode_or_are_corrupt(make_chunks: Make, encoding: Encoding, data: st.DataObject) -> None:
    codec = codec_from_proto(encoding)
    parts = data.draw(st.lists(st.tuples(st.lists(buffers, min_size=4, max_size=4), counts), min_size=1, max_size=3))
    small = [min(count, 1 << 62) for _, count in parts]
    chunks = make_chunks([part[: codec.num_buffers] for part, _ in parts], small)
    one = make_chunks([part[:1] for part, _ in parts], small)
    buffer = np.frombuffer(parts[0][0][0], np.uint8)
    ends = np.array(data.draw(st.lists(st.integers(0, len(buffer)), min_size=1, max_size=4).map(sorted)), np.int64)
    for decode in (
        lambda: codec.decode_chunks(chunks),
        lambda: codec.decode_blocks(one),
        lambda: codec.decode_block(buffer, parts[0][1]),
        lambda: codec.decode_values(VariableWidth(ends, buffer)),
        lambda: codec.decode_values(FixedWidth(40, buffer, len(buffer) // 5)),
    ):
        try:
            touch(decode())
        except (CorruptError, UnsupportedError):
            continue


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(ENCODINGS)), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=3))
def test_any_description_is_read_or_rejected(name: str, changes: list[tuple[int, int]]) -> None:
    message = bytearray(ENCODINGS[name].SerializeToString())
    for place, value in changes:
        message[place % len(message)] = value
    encoding = Encoding()
    try:
        encoding.ParseFromString(bytes(message))
    except Exception:  # the caller's to refuse
        return
    try:
        codec_from_proto(encoding)
    except FormatError:
        return
