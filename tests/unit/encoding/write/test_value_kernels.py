from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.encoding.write.samples import BITS, drawn, texts

from lance_duck.kernels.jit import readonly
from lance_duck.kernels.numbers import (
    bitpacking_encode,
    byte_stream_split,
    flat_encode,
    packed_struct,
    rle_encode,
)
from lance_duck.kernels.texts import dictionary_encode, fsst_encode, fsst_table, variable_encode

counts_of = st.lists(st.integers(0, 2100), min_size=1, max_size=3).map(lambda c: np.array(c, np.int64))
few = st.lists(st.binary(max_size=12), min_size=1, max_size=40)
repeated = st.lists(st.sampled_from([b"", b"a", b"b", b"a\0", b"ab" * 9, b"ab" * 8 + b"ba"]), min_size=1, max_size=60)
symbols = st.lists(st.binary(min_size=1, max_size=8), unique=True, max_size=300)


def same(kernel: Callable[..., Any], reference: Callable[..., Any], inputs: tuple[Any, ...], out: list[Any]) -> Any:
    """Both give the same result and write the same."""
    results = []
    for function in (kernel, reference):
        written = [array.copy() for array in out]
        results.append((function(*inputs, *written), [array.tolist() for array in written]))
    assert results[0] == results[1]
    return results[0][0]


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(BITS), st.integers(0, 64), counts_of)
def test_packing_equals_its_reference(bits: int, width: int, counts: np.ndarray) -> None:
    width = min(width, bits)
    words = readonly(drawn(bits, width, int(counts.sum()), 1))
    scratch = np.zeros(1024, words.dtype)
    out = np.zeros((int(((counts + 1023) // 1024).sum())) * 1025 * words.itemsize, np.uint8)
    ends = np.zeros(len(counts), np.int64)
    args = (words, counts, scratch)
    used = same(bitpacking_encode.pack_inline, bitpacking_encode.pack_inline_reference, args, [out, ends])
    assert used <= len(out)
    width = max(width, 1)
    tails = np.minimum(counts % 1024 * words.itemsize, width * 128)
    fixed = np.zeros(int((counts // 1024 * width * 128 + tails).sum()), np.uint8)
    same(bitpacking_encode.pack_fixed, bitpacking_encode.pack_fixed_reference, (words, counts, width, scratch), [fixed])
    if len(words):
        args = (words, 0, len(words))
        assert bitpacking_encode.bit_width(*args) == bitpacking_encode.bit_width_reference(*args)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(BITS), counts_of, st.integers(1, 400))
def test_run_and_number_statistics_equal_their_references(bits: int, counts: np.ndarray, longest: int) -> None:
    total = int(counts.sum())
    rng = np.random.default_rng(total)
    words = readonly(np.repeat(drawn(bits, bits, total, 2), rng.integers(0, longest, total))[:total])
    words = readonly(np.concatenate([words, np.zeros(total - len(words), words.dtype)]))
    runs = np.zeros(len(counts), np.int64)
    same(rle_encode.count_runs, rle_encode.count_runs_reference, (words, counts), [runs])
    rle_encode.count_runs(words, counts, runs)
    values, lengths = np.zeros(int(runs.sum()), words.dtype), np.zeros(int(runs.sum()), np.uint8)
    same(rle_encode.find_runs, rle_encode.find_runs_reference, (words, counts), [values, lengths])
    out = np.zeros(int((8 + runs * (words.itemsize + 1)).sum()), np.uint8)
    args = (values.view(np.uint8), lengths, runs, words.itemsize)
    same(rle_encode.write_runs, rle_encode.join_runs_reference, args, [out])
    seen = np.zeros(-(-total // 1024), np.uint64)
    same(bitpacking_encode.collect_number_stats, bitpacking_encode.look_reference, (words,), [seen])


@settings(deadline=None, max_examples=30)
@given(counts_of, st.integers(0, 255))
def test_bits_and_streams_equal_their_references(counts: np.ndarray, seed: int) -> None:
    total = int(counts.sum())
    bits = readonly(np.random.default_rng(seed).integers(0, 2, total).astype(np.uint8))
    out = np.zeros(int(((counts + 7) // 8).sum()), np.uint8)
    same(flat_encode.gather_bits, flat_encode.gather_bits_reference, (bits, counts), [out])
    data = readonly(np.arange(total * 8, dtype=np.uint64).view(np.uint8)[: total * 8])
    split, reference = byte_stream_split.split_streams, byte_stream_split.split_streams_reference
    same(split, reference, (data, 8, counts), [np.zeros(total * 8, np.uint8)])


@settings(deadline=None, max_examples=60)
@given(few | repeated, st.sampled_from([4, 8]), st.integers(10, 300), st.sampled_from([2, 4, 4096]))
def test_cutting_strings_equals_its_reference(values: list[bytes], width: int, limit: int, most: int) -> None:
    block = texts(values, skip=3)
    offsets, data = readonly(block.offsets), readonly(block.data)
    counts = np.zeros(len(values), np.int64)
    args = (offsets, width, limit, most)
    chunks = same(variable_encode.cut_variable, variable_encode.cut_variable_reference, args, [counts])
    variable_encode.cut_variable(*args, counts)
    counts = counts[:chunks].copy()
    assert counts.sum() == len(values)
    out = np.zeros(len(data) + (len(values) + 2 * chunks) * width, np.uint8)
    ends = np.zeros(chunks, np.int64)
    args = (data, offsets, counts, width)
    same(variable_encode.split_variable, variable_encode.split_variable_reference, args, [out, ends])


@settings(deadline=None, max_examples=30)
@given(few)
def test_packing_rows_equals_its_reference(values: list[bytes]) -> None:
    block = texts(values, skip=1)
    data, offsets = readonly(block.data), readonly(block.offsets)
    places = np.cumsum([0, *(len(value) + 8 for value in values[:-1])]).astype(np.int64)
    out = np.zeros(sum(map(len, values)) + 8 * len(values), np.uint8)
    for length in (4, 8):
        args = (data, offsets, length)
        same(packed_struct.place_variable, packed_struct.place_variable_reference, args, [places, out])
    fixed = np.arange(3 * len(values), dtype=np.uint8)
    same(packed_struct.place_fixed, packed_struct.place_fixed_reference, (fixed, 3), [places, out])


@settings(deadline=None, max_examples=60)
@given(repeated | few, st.integers(1, 40))
def test_numbering_equals_its_reference(values: list[bytes], most: int) -> None:
    block = texts(values, skip=2)
    places, firsts = np.zeros(len(values), np.uint32), np.zeros(most, np.int64)
    distinct = len(set(values))
    for number, args in (
        ("number_variable", (readonly(block.offsets), readonly(block.data))),
        ("number_fixed", (readonly(np.frombuffer(b"".join(v.ljust(24)[:24] for v in values), np.uint8)), 3)),
    ):
        results = []
        for name in (number, number + "_reference"):
            out = [places.copy(), firsts.copy()]
            table = np.full(256, -1, np.int32)
            found = getattr(dictionary_encode, name)(*args, *out, table)
            results.append((found, out[0].tolist() if found >= 0 else None, out[1].tolist() if found >= 0 else None))
        assert results[0] == results[1]
    assert results[0][0] in (-1, *range(1, distinct + 1))


@settings(deadline=None, max_examples=60)
@given(symbols, st.lists(st.binary(max_size=20), max_size=10), st.data())
def test_symbols_equal_their_references(table: list[bytes], values: list[bytes], data: st.DataObject) -> None:
    values += [b"".join(data.draw(st.lists(st.sampled_from(table), max_size=12))) for _ in range(3 if table else 0)]
    words = np.array([int.from_bytes(symbol, "little") for symbol in table], np.uint64)
    lengths = np.array([len(symbol) for symbol in table], np.uint8)
    places = [
        np.zeros(fsst_table.SLOTS, np.uint64),
        np.zeros(fsst_table.SLOTS, np.uint64),
        np.zeros(fsst_table.SLOTS, np.uint16),
        np.zeros(fsst_table.SHORT, np.uint16),
    ]
    chosen = np.zeros(fsst_table.MAX_SYMBOLS, np.int64)
    fill = (fsst_table.fill_table, fsst_table.fill_table_reference)
    count = same(*fill, (words, lengths), [*places, chosen])
    fsst_table.fill_table(words, lengths, *places, chosen)
    assert count <= 255
    block = texts(values, skip=1)
    args = (readonly(block.data), readonly(block.offsets), tuple(places))
    out = np.zeros(2 * len(block.data) + fsst_encode.SLACK, np.uint8)
    results, middle = [], data.draw(st.integers(0, len(values)))
    for compress in (fsst_encode.compress, fsst_encode.compress_reference):
        ends = np.zeros(len(values) + 1, np.int64)
        used = compress(*args, middle, ends, out, np.zeros_like(out))
        results.append((ends.tolist(), out[:used].tobytes()))
    assert results[0] == results[1]
    kinds = [np.zeros(fsst_encode.KINDS, np.int32), np.zeros(fsst_encode.KINDS**2, np.int32)]
    same(fsst_encode.count_codes, fsst_encode.count_codes_reference, args, kinds)
