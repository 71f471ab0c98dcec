"""Fuzzy walks through an automaton find the same terms as comparing every term."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from lance_duck.index.inverted.codecs.fst import fst_bytes, open_fst
from lance_duck.scan.text.query.vocabulary import matching_terms
from lance_duck.scan.text.query.words import Word

WORDS = st.text(st.sampled_from("abéß水🦆"), max_size=6)


@given(
    st.sets(WORDS, max_size=40),
    WORDS,
    st.integers(0, 3),
    st.integers(0, 4),
    st.sampled_from([0, 1, 3, 1000, 1 << 70]),
)
@example({"a" * 300, "b"}, "a" * 299, 1, 2, 50)
@example({"a" * 300, "ab" * 400}, "a", 1000, 1, 50)
@example({f"{i:04}" for i in range(3000)}, "0", 4, 1, 5000)
def test_a_fuzzy_walk_finds_the_same_terms_as_comparing_all(words, word, edits, fixed, most) -> None:
    terms = pa.array(sorted(each.encode() for each in words), pa.large_binary())
    fst = open_fst(fst_bytes(terms, np.arange(len(terms))), "here")
    near = matching_terms(terms, Word(word.encode(), 0, edits=edits, fixed=fixed))
    found = fst.near(word, edits, fixed, most)
    assert found is None if len(word) > 256 else found == near[:most]
    if edits:
        assert fst.near(word, 1 << 70, 0, most) in (None, terms.to_pylist()[:most])
    begun = matching_terms(terms, Word(None, 0, beginning=word.encode()))
    assert fst.near(word, 0, len(word), most, is_open=True) in (None, begun[:most])


def test_terms_that_are_not_utf8_fall_back_to_comparing_all() -> None:
    for term in (b"a\xff", b"a\xc3", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3a"):
        terms = pa.array(sorted([b"a", b"b", term]), pa.large_binary())
        assert open_fst(fst_bytes(terms, np.arange(3)), "here").near("a", 1, 0, 9) is None


def test_terms_with_another_prefix_are_not_visited() -> None:
    terms = pa.array([b"ab", b"ac", b"zzz\xff"], pa.large_binary())
    fst = open_fst(fst_bytes(terms, np.arange(3)), "here")
    assert fst.near("ab", 1, 1, 9) == [b"ab", b"ac"]
    assert fst.near("a", 0, 1, 9, is_open=True) == [b"ab", b"ac"]
