"""Number sequences with few parameters, strings with such offsets, and encoded run lengths."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codecs.offset_variable import OffsetVariable
from lance_duck.encoding.codecs.packed_runs import PackedRuns
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.codecs.sequences import sequence_from_proto
from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

COUNTS = st.lists(st.integers(0, 5), min_size=1, max_size=4)


def flat(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def words(values: list[int], bits: int) -> bytes:
    return np.array(values, f"<u{bits // 8}").tobytes()


def chunks_of(buffers: list[list[bytes]], counts: list[int]) -> Chunks:
    """Return chunks of some buffers each."""
    sizes = np.array([[len(buffer) for buffer in chunk] for chunk in buffers], np.int64).reshape(len(buffers), -1).T
    starts = (np.cumsum(sizes.T.reshape(-1)) - sizes.T.reshape(-1)).reshape(sizes.T.shape).T
    data = np.frombuffer(b"".join(b"".join(chunk) for chunk in buffers), np.uint8)
    return Chunks(data, starts, sizes, np.array(counts, np.int64))


@given(COUNTS, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.sampled_from([8, 16, 32, 64]))
def test_a_range_restarts_in_each_chunk_and_wraps(counts: list[int], start: int, step: int, bits: int) -> None:
    message = pb.CompressiveEncoding(range=pb.Range(uncompressed_bits_per_value=bits, start=start, step=step))
    numbers = sequence_from_proto(message, 32, codec_from_proto).decode(chunks_of([[] for _ in counts], counts))
    assert numbers.tolist() == [(start + i * step) % 2**bits for count in counts for i in range(count)]


@given(st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=4), min_size=1, max_size=3), st.integers(0, 2**64 - 1))
def test_deltas_are_summed_from_the_base_in_each_chunk(deltas: list[list[int]], base: int) -> None:
    message = pb.CompressiveEncoding(
        delta=pb.Delta(uncompressed_bits_per_value=32, base=base, deltas=flat(32)),
    )
    chunks = chunks_of([[words(each, 32)] for each in deltas], [len(each) + 1 for each in deltas])
    expected = [(base + sum(each[:i])) % 2**32 for each in deltas for i in range(len(each) + 1)]
    assert sequence_from_proto(message, 32, codec_from_proto).decode(chunks).tolist() == expected


def texts_of(offsets: list[int], data: bytes) -> list[bytes]:
    message = pb.Variable(
        offsets=pb.CompressiveEncoding(delta=pb.Delta(uncompressed_bits_per_value=64, deltas=flat(64)))
    )
    steps = [b - a for a, b in pairwise(offsets)]
    chunks = chunks_of([[words([step % 2**64 for step in steps], 64), data]], [len(steps)])
    block = OffsetVariable.from_proto(message, codec_from_proto).decode_chunks(chunks)
    ends = block.offsets.tolist()
    return [block.data[a:b].tobytes() for a, b in pairwise(ends)]


def test_strings_are_cut_at_their_offsets() -> None:
    assert texts_of([0, 2, 2, 5], b"abcde") == [b"ab", b"", b"cde"]


@pytest.mark.parametrize(
    "offsets",
    [[0, 6], [0, 3, 1], [0, 2**63 - 1, 2**64 - 2, 2**64 + 5], [0, 2**64 - 1], [0, 2**63, 2**64 + 1]],
    ids=["beyond the bytes", "descending", "wrapped twice", "negative", "wrapped once"],
)
def test_offsets_beyond_the_data_are_corrupt_even_if_they_wrap(offsets: list[int]) -> None:
    with pytest.raises(CorruptError, match="the offsets of a chunk are invalid"):
        texts_of(offsets, b"abcde")


def expanded(values: list[int], lengths: list[int], count: int) -> list[int]:
    message = pb.Rle(values=flat(16), run_lengths=flat(64))
    codec = PackedRuns.from_proto(message, codec_from_proto)
    chunks = chunks_of([[words(values, 16), words([each % 2**64 for each in lengths], 64)]], [count])
    return codec.decode_chunks(chunks).data.view("<u2").tolist()


@given(st.lists(st.tuples(st.integers(0, 2**16 - 1), st.integers(0, 5)), min_size=1, max_size=6), st.data())
def test_runs_are_expanded_up_to_the_count(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    whole = [value for value, length in runs for _ in range(length)]
    count = data.draw(st.integers(0, len(whole)))
    assert expanded([value for value, _ in runs], [length for _, length in runs], count) == whole[:count]


@pytest.mark.parametrize("lengths", [[2, 2], [5, -1, 3], [2**63 - 1, 2**63 - 1, 9], [-1, 9]])
def test_runs_that_end_early_or_wrap_are_an_error(lengths: list[int]) -> None:
    with pytest.raises(CorruptError, match="the runs end before the end of their chunk"):
        expanded([7] * len(lengths), lengths, 6)


def test_run_lengths_without_a_known_count_are_rejected() -> None:
    packed = pb.CompressiveEncoding(
        out_of_line_bitpacking=pb.OutOfLineBitpacking(uncompressed_bits_per_value=16, values=flat(3))
    )
    with pytest.raises(UnsupportedError, match="needs plain values or plain run lengths"):
        PackedRuns.from_proto(pb.Rle(values=packed, run_lengths=packed), codec_from_proto)


@pytest.mark.parametrize("bits", [0, 1, 12, 128])
def test_unsupported_number_sizes_are_rejected(bits: int) -> None:
    for message in (
        pb.CompressiveEncoding(range=pb.Range(uncompressed_bits_per_value=bits)),
        pb.CompressiveEncoding(delta=pb.Delta(uncompressed_bits_per_value=bits, deltas=flat(32))),
    ):
        with pytest.raises(LanceDuckError, match="sequences do not support numbers of this size"):
            sequence_from_proto(message, 32, codec_from_proto)
