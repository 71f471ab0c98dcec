from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import CorruptError, FormatError, InvalidInputError, UnsupportedError
from lance_duck.index.inverted.codecs.fst import fst_bytes, open_fst

Terms = st.lists(st.binary(max_size=4) | st.sampled_from([b"abc", b"abd", b"xbd", b"xyz" * 40]), unique=True).map(
    sorted
)


def array(terms: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(terms, pa.large_binary())


def walked(data: np.ndarray, terms: list[bytes]) -> tuple[list[bytes], list[int]]:
    found, ids = open_fst(data, "terms").terms(sum(map(len, terms)))
    return found.to_pylist(), ids.tolist()


@given(Terms, st.randoms(use_true_random=False))
def test_encoded_terms_and_ids_decode_to_the_same_terms(terms, random) -> None:
    ids = list(range(len(terms)))
    random.shuffle(ids)
    data = fst_bytes(array(terms), np.array(ids, np.int64))
    assert walked(data, terms) == (terms, ids)
    fst = open_fst(data, "terms")
    assert fst.find(terms).tolist() == ids
    others = [term + b"\0" for term in terms if term + b"\0" not in terms] + [b"never there"]
    assert set(fst.find(others).tolist()) == {-1}


def test_nodes_with_any_number_of_transitions_are_read() -> None:
    for count in (0, 1, 2, 32, 33, 63, 64, 255, 256):
        terms = [bytes([i]) + tail for i in range(count) for tail in (b"", b"tail")]
        ids = np.arange(len(terms))[::-1].astype(np.int64)
        assert walked(fst_bytes(array(terms), ids), terms) == (terms, ids.tolist())


def test_equal_ends_are_shared() -> None:
    heads = [f"{i:03}".encode() for i in range(500)]
    data = fst_bytes(array([head + b"-the-same-long-end" for head in heads]), np.zeros(500, np.int64))
    assert len(data) < 1000


def test_long_terms_do_not_recurse() -> None:
    terms = [b"a" * 100_000, b"a" * 100_000 + b"b"]
    assert walked(fst_bytes(array(terms), np.array([1, 0])), terms) == (terms, [1, 0])


def test_an_automaton_equals_the_bytes_written_by_pylance() -> None:
    """Bytes that pylance 14.0.2 wrote for the terms bar, bat and foo, in the order of their ids 1, 2, 0."""
    head, tail = struct.pack("<QQ", 3, 0), struct.pack("<Q", 3)
    data = fst_bytes(array([b"bar", b"bat", b"foo"]), np.array([1, 2, 0])).tobytes()
    assert data.startswith(head)
    assert data[-20:-12] == tail
    (crc,) = struct.unpack("<I", data[-4:])
    table = [0] * 256
    for i in range(256):
        value = i
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table[i] = value
    value = 0xFFFFFFFF
    for byte in data[:-4]:
        value = (value >> 8) ^ table[(value ^ byte) & 255]
    value ^= 0xFFFFFFFF
    assert crc == (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize("version", [1, 2])
def test_older_automaton_versions_have_no_checksum(version) -> None:
    terms = [bytes([i]) for i in range(30)]
    data = fst_bytes(array(terms), np.arange(30))[:-4].copy()
    data[0] = version
    assert walked(data, terms) == (terms, list(range(30)))


def test_other_automaton_versions_are_rejected() -> None:
    data = fst_bytes(array([b"a"]), np.arange(1))
    data[0] = 4
    with pytest.raises(UnsupportedError, match="version 1 … 3"):
        open_fst(data, "terms")


def test_unsorted_terms_are_rejected() -> None:
    for terms in ([b"b", b"a"], [b"a", b"a"], [b"ab", b"a"]):
        with pytest.raises(InvalidInputError, match="byte order"):
            fst_bytes(array(terms), np.arange(2))


def test_a_changed_byte_is_detected() -> None:
    terms = [b"bar", b"bat", b"foo", b"foot"]
    data = fst_bytes(array(terms), np.arange(4))
    for i in range(len(data)):
        broken = data.copy()
        broken[i] ^= 0x11
        with pytest.raises(FormatError):
            walked(broken, terms)


def test_a_changed_byte_without_a_checksum_gives_an_error_or_terms() -> None:
    terms = sorted({bytes(word) for word in np.random.default_rng(3).integers(97, 101, (200, 5)).astype(np.uint8)})
    data = fst_bytes(array(terms), np.arange(len(terms)))[:-4].copy()
    data[0] = 1
    for i in range(16, len(data)):
        for flip in (0x01, 0x80, 0xFF):
            broken = data.copy()
            broken[i] ^= flip
            try:
                found, ids = walked(broken, terms)
                open_fst(broken, "terms").find(terms)
            except FormatError:
                continue
            assert found == sorted(set(found))
            assert sorted(ids) == list(range(len(terms)))


def test_truncated_automata_are_corrupt() -> None:
    data = fst_bytes(array([b"bar", b"bat"]), np.arange(2))
    for size in range(len(data)):
        with pytest.raises(CorruptError):
            open_fst(data[:size], "terms")
