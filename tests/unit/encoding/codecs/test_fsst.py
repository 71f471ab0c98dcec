from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.encoding.block import VariableWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.texts import fsst as kernels
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]
SYMBOLS = [b"the ", b"a", b"quick fo", b"x"]


def symbol_table(symbols: Sequence[bytes], coded: bool = True) -> bytes:
    head = bytes([len(symbols), 0, 0, coded]) + b"TSSF"
    body = b"".join(s.ljust(8, b"\xaa") for s in symbols) + bytes(map(len, symbols))
    return (head + body).ljust(2312, b"\0")


def codec(table: bytes) -> Codec:
    offsets = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=32))
    values = pb.CompressiveEncoding(variable=pb.Variable(offsets=offsets))
    return codec_from_proto(pb.CompressiveEncoding(fsst=pb.Fsst(symbol_table=table, values=values)))


def encode(value: bytes, symbols: Sequence[bytes]) -> bytes:
    codes = bytearray()
    while value:
        best = max((s for s in symbols if value.startswith(s)), key=len, default=b"")
        codes += bytes([symbols.index(best)]) if best else bytes([255, value[0]])
        value = value[max(len(best), 1) :]
    return bytes(codes)


def variable(values: Sequence[bytes], skip: int = 0) -> VariableWidth:
    offsets = np.cumsum([skip, *map(len, values)]).astype(np.int64)
    return VariableWidth(offsets, np.frombuffer(b"\xff" * skip + b"".join(values), np.uint8))


def values_of(decoded: VariableWidth) -> list[bytes]:
    return [decoded.data[a:b].tobytes() for a, b in pairwise(decoded.offsets.tolist())]


def test_symbols_and_escapes_are_expanded() -> None:
    values = [b"the quick fox", b"", b"a\xff\x00z", b"quick foquick foquick fo" * 5]
    decoded = codec(symbol_table(SYMBOLS)).decode_values(variable([encode(v, SYMBOLS) for v in values], skip=3))
    assert values_of(decoded) == values
    assert decoded.offsets.dtype == np.int32
    assert len(decoded.data) == sum(map(len, values))


def test_chunks_are_joined(make_chunks: Make) -> None:
    buffers = []
    for part in ([b"the x"], [b"a", b"the "]):
        coded = [encode(v, SYMBOLS) for v in part]
        ends = np.cumsum([4 * len(coded) + 4, *map(len, coded)]).astype("<u4").tobytes()
        buffers.append([ends + b"".join(coded)])
    decoded = codec(symbol_table(SYMBOLS)).decode_chunks(make_chunks(buffers, [1, 2]))
    assert values_of(decoded) == [b"the x", b"a", b"the "]


def test_uncoded_values_pass_through_unchanged() -> None:
    values = variable([b"the", b"\xff"])
    assert codec(symbol_table([], coded=False)).decode_values(values) is values


@pytest.mark.parametrize("codes", [b"\xff", b"\x00\xff", b"\x04", b"\x00" * 8 + b"\xff", b"\x00" * 7 + b"\x09"])
def test_codes_without_a_meaning_are_corrupt(codes: bytes) -> None:
    with pytest.raises(CorruptError, match="symbol"):
        codec(symbol_table(SYMBOLS)).decode_values(variable([b"\x00", codes]))


def test_values_may_exceed_the_decoder_chunk_size() -> None:
    values = [b"the \xfe" * 3000, b"", b"a" * 2 * kernels.PIECE, b"x"]
    values += [b"the quick fox"[: i % 13] for i in range(3 * kernels.PIECE)]
    decoded = codec(symbol_table(SYMBOLS)).decode_values(variable([encode(v, SYMBOLS) for v in values]))
    assert values_of(decoded) == values


def test_an_escape_does_not_consume_the_next_value() -> None:
    with pytest.raises(CorruptError):
        codec(symbol_table(SYMBOLS)).decode_values(variable([b"\xff", b"\x01"]))


@pytest.mark.parametrize(
    "table",
    [
        b"",
        symbol_table(SYMBOLS)[:40],
        symbol_table(SYMBOLS).replace(b"TSSF", b"FSST"),
        symbol_table([b"a" * 8, b""]),
        symbol_table(SYMBOLS).replace(bytes(map(len, SYMBOLS)), b"\x09\x01\x01\x01"),
    ],
)
def test_bad_symbol_tables_are_corrupt(table: bytes) -> None:
    with pytest.raises(CorruptError):
        codec(table)


def test_fsst_is_rejected_for_levels(make_chunks: Make) -> None:
    with pytest.raises(UnsupportedError):
        codec(symbol_table(SYMBOLS)).decode_blocks(make_chunks([[b""]], [0]))


symbols = st.lists(st.binary(min_size=1, max_size=8), max_size=6)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=6), symbols)
def test_encoded_values_decode_to_the_original(values: list[bytes], table: list[bytes]) -> None:
    decoded = codec(symbol_table(table)).decode_values(variable([encode(v, table) for v in values]))
    assert values_of(decoded) == values


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from([0, 0, 1, 2, 5, 255]), max_size=40).map(bytes), max_size=5), symbols)
def test_expand_equals_its_reference(values: list[bytes], table: list[bytes]) -> None:
    codes = variable(values, skip=2)
    words, lengths = np.zeros(256, np.uint64), np.full(256, kernels.NO_SYMBOL, np.uint8)
    for i, symbol in enumerate(table):
        words[i], lengths[i] = int.from_bytes(symbol, "little"), len(symbol)
    results = []
    for function in (kernels.expand, kernels.expand_reference):
        offsets = np.zeros(len(values) + 1, np.int32)
        out = np.zeros(8 * len(codes.data) + kernels.SLACK, np.uint8)
        places = np.zeros(kernels.PLACES, np.int64)
        status = function(codes.data, codes.offsets, words, lengths, offsets, out, places) & 0xFF
        results.append((status, (offsets.tolist(), out[: offsets[-1]].tobytes()) if status == 0 else None))
    assert results[0] == results[1]
