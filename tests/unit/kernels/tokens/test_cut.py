from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.kernels.jit import readonly
from lance_duck.kernels.tokens.cut import (
    BAD_OFFSETS,
    CODE_POINTS,
    DONE,
    TOKENS_FULL,
    WORDS_FULL,
    ascii_sums,
    cut_ngrams,
    cut_whole,
    cut_words,
)
from lance_duck.kernels.tokens.keep import DROPPED, keep_tokens, keep_tokens_reference
from lance_duck.kernels.tokens.words import LONG

LETTERS = np.zeros(CODE_POINTS, np.uint8)
LETTERS[ord("a") : ord("z") + 1] = 1
LETTERS[0x80:] = 1


class Arrays:
    """Arrays for one run of a kernel."""

    def __init__(
        self, texts: list[bytes], words: int = 64, tokens: int = 512, offsets: list[int] | None = None
    ) -> None:
        self.data = readonly(np.frombuffer(b"".join(texts), np.uint8))
        self.offsets = readonly(np.array(offsets or np.cumsum([0, *map(len, texts)]), np.int64))
        self.slots = np.zeros(4 * 64, np.uint64)
        self.starts, self.sizes = np.zeros(words, np.int64), np.zeros(words, np.int64)
        self.ids = np.zeros(tokens, np.uint32)
        self.spans = np.zeros((tokens, 2), np.int64)
        self.bounds = np.zeros(len(self.offsets), np.int64)
        self.known = np.zeros(4096, np.uint8)
        self.state = np.array([0, -1, 0, 0, 0], np.int64)

    def cut(self, limit: int = 40, ngrams: tuple[int, int, int] | None = None) -> int:
        table = (self.known, self.starts, self.sizes, self.slots)
        rest = (limit, table, self.ids, self.spans, self.bounds, self.state)
        if ngrams:
            return cut_ngrams(self.data, self.offsets, readonly(np.array(ngrams, np.int64)), *rest)
        return cut_words(self.data, self.offsets, (readonly(LETTERS), readonly(ascii_sums(LETTERS))), *rest)

    def cut_whole(self, limit: int) -> int:
        table = (self.known, self.starts, self.sizes, self.slots)
        return cut_whole(self.data, self.offsets, 0, limit, table, self.ids, self.spans, self.bounds, self.state)

    def tokens(self) -> list[bytes | None]:
        data = self.known.tobytes()
        words = [data[a : a + n] for a, n in zip(self.starts.tolist(), self.sizes.tolist(), strict=True)]
        return [None if i == LONG else words[i] for i in self.ids[: self.state[2]].tolist()]


def test_word_ids_follow_the_first_occurrence() -> None:
    arrays = Arrays([b"ab, cd ab", b"", b"abcdefghij ab abcdefghik"])
    assert arrays.cut() == DONE
    assert arrays.ids[:6].tolist() == [0, 1, 0, 2, 0, 3]
    assert arrays.bounds.tolist() == [0, 3, 3, 6]
    assert arrays.spans[:6].tolist() == [[0, 2], [4, 6], [7, 9], [9, 19], [20, 22], [23, 33]]
    assert arrays.state.tolist() == [3, -1, 6, 4, 24]


def test_a_vocabulary_continues_with_words_of_later_documents() -> None:
    first, second = Arrays([b"ab abcdefghij"]), Arrays([b"cd abcdefghij ab abcdefghik"])
    assert first.cut() == DONE
    for name in ("known", "starts", "sizes", "slots"):
        setattr(second, name, getattr(first, name))
    second.state[3:] = first.state[3:]
    assert second.cut() == DONE
    assert second.tokens() == [b"cd", b"abcdefghij", b"ab", b"abcdefghik"]
    assert second.ids[:4].tolist() == [2, 1, 0, 3]


def test_each_whole_string_is_a_token() -> None:
    arrays = Arrays([b"a b", b"", b"abcd", b"a b"])
    assert arrays.cut_whole(limit=4) == DONE
    assert arrays.tokens() == [b"a b", b"", None, b"a b"]
    assert arrays.bounds.tolist() == [0, 1, 2, 3, 4]
    assert arrays.spans[:4].tolist() == [[0, 3], [3, 3], [3, 7], [7, 10]]


def test_words_without_room_for_their_bytes_wait_for_it() -> None:
    arrays = Arrays([b"abc de abc"])
    arrays.known = np.zeros(4, np.uint8)
    assert arrays.cut() == WORDS_FULL
    assert arrays.state.tolist() == [0, 4, 1, 1, 3]
    arrays.known = np.concatenate([arrays.known, np.zeros(4, np.uint8)])
    assert arrays.cut() == DONE
    assert arrays.tokens() == [b"abc", b"de", b"abc"]


@pytest.mark.parametrize("character", ["a", "m", "z", "`", "{", " ", "\x00", "\x7f", "A", "\x80", "é", "漢", "😀"])
def test_runs_of_letters_end_at_any_length(character: str) -> None:
    is_letter = LETTERS[ord(character)] == 1
    for before in range(20):
        for after in range(10):
            text = "b" * before + character + "c" * after
            arrays = Arrays([text.encode(), b"d" * 9])
            assert arrays.cut() == DONE
            runs = [text] if is_letter else [run for run in ("b" * before, "c" * after) if run]
            assert arrays.tokens() == [*(run.encode() for run in runs), b"d" * 9]


def test_words_that_differ_only_in_length_are_distinguished() -> None:
    arrays = Arrays([b"a\xc2\x80 a", b"aaaaaaaa aaaaaaaaa aaaaaaaa", b"a" * 300, b"a" * 301, b"a" * 300])
    assert arrays.cut(limit=1000) == DONE
    assert arrays.ids[:8].tolist() == [0, 1, 2, 3, 2, 4, 5, 4]


def test_tokens_above_the_limit_have_no_id() -> None:
    arrays = Arrays([b"abc abcd"])
    assert arrays.cut(limit=4) == DONE
    assert arrays.tokens() == [b"abc", None]


def test_full_arrays_are_reported_and_the_work_continues() -> None:
    arrays = Arrays([b"x y", b"a b a c"], words=4, tokens=3)
    assert arrays.cut() == TOKENS_FULL
    assert arrays.state.tolist() == [1, 5, 3, 3, 3]
    arrays.ids = np.concatenate([arrays.ids, np.zeros(9, np.uint32)])
    assert arrays.cut() == WORDS_FULL
    assert arrays.state.tolist() == [1, 9, 5, 4, 4]
    assert arrays.tokens() == [b"x", b"y", b"a", b"b", b"a"]


@pytest.mark.parametrize("offsets", [[0, 9], [3, 1], [-1, 2], [0, 2, 1]])
@pytest.mark.parametrize("ngrams", [None, (1, 2, 0)])
def test_bad_offsets_are_reported(offsets: list[int], ngrams: tuple[int, int, int] | None) -> None:
    assert Arrays([b"abcd"], offsets=offsets).cut(ngrams=ngrams) == BAD_OFFSETS


@given(st.lists(st.binary(max_size=12), max_size=6), st.sampled_from([None, (1, 1, 0), (2, 3, 0), (1, 4, 1)]))
def test_damaged_utf8_does_not_affect_neighbouring_strings(texts: Any, ngrams: tuple[int, int, int] | None) -> None:
    arrays = Arrays(texts, words=64, tokens=512)
    status = arrays.cut(ngrams=ngrams)
    assert status in (DONE, WORDS_FULL)
    count, words = int(arrays.state[2]), int(arrays.state[3])
    assert (arrays.ids[:count] < words).all()
    bounds = np.append(arrays.bounds[: arrays.state[0] + 1], count)
    of_texts = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    assert (arrays.spans[:count, 0] >= arrays.offsets[of_texts]).all()
    assert (arrays.spans[:count, 1] <= arrays.offsets[of_texts + 1]).all()
    data = arrays.data.tobytes()
    assert arrays.tokens() == [data[begin:end] for begin, end in arrays.spans[:count].tolist()]


@given(st.lists(st.lists(st.sampled_from([0, 1, 2, 3, LONG]), max_size=6), max_size=6), st.booleans())
def test_kept_tokens_equal_those_of_the_reference(texts: Any, has_positions: bool) -> None:
    terms = readonly(np.array([5, DROPPED, 0, 1], np.uint32))
    bounds = readonly(np.cumsum([0, *map(len, texts)]).astype(np.int64))
    results = []
    for keep in (keep_tokens, keep_tokens_reference):
        ids = np.array([i for text in texts for i in text], np.uint32)
        positions, kept = np.zeros(len(ids), np.uint32), np.zeros(len(bounds), np.int64)
        count = keep(ids, bounds, terms, has_positions, positions, kept)
        results.append((count, ids[:count].tolist(), positions[:count].tolist(), kept.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize(("bounds", "word"), [([0, 3], 0), ([2, 1], 0), ([-1, 1], 0), ([0, 2], 4)])
def test_invalid_bounds_and_word_ids_are_rejected(bounds: list[int], word: int) -> None:
    ids = np.full(2, word, np.uint32)
    kept = np.zeros(2, np.int64)
    terms = readonly(np.arange(4, dtype=np.uint32))
    assert keep_tokens(ids, readonly(np.array(bounds, np.int64)), terms, True, np.zeros(2, np.uint32), kept) == -1
