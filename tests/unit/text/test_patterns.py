from __future__ import annotations

import random
import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.text.patterns import Parts, glob_parts, like_parts, regex_parts

NOTHING = ((),)


def said(pattern: str) -> list[list[str]]:
    """Return the parts that are not empty, of each alternative."""
    return [[part for part in parts if part] for parts in regex_parts(pattern).alternatives]


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [("%hello%", ["", "hello", ""]), ("hel%lo", ["hel", "lo"]), ("a_b", ["a", "b"]), ("%", ["", ""]), ("", [""])],
)
def test_like_patterns_are_split_into_required_parts(pattern: str, parts: list[str]) -> None:
    assert list(like_parts(pattern)) == parts


def test_an_escape_ends_a_required_part() -> None:
    assert like_parts("abc$%def", "$") == ("abc", "", "def")
    assert like_parts("abcxdef", "x") == ("abc", "def")
    assert like_parts("abc]def", "]") == ("abc", "def")
    assert like_parts("abc^def", "^") == ("abc", "def")


def test_glob_patterns_are_split_into_required_parts() -> None:
    assert glob_parts("*hel?o*") == ("", "hel", "o", "")
    assert glob_parts("*[abc]def") == ()
    assert glob_parts("abc\\*def") == ()


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("hello", [["hello"]]),
        ("h.llo", [["h", "llo"]]),
        ("^hel+o$", [["hel", "o"]]),
        ("wan?ted", [["wa", "ted"]]),
        ("ab*c", [["a", "c"]]),
        ("ab{2}c", [["ab", "c"]]),
        ("ab{0,2}c", [["a", "c"]]),
        ("ab+?c", [["ab", "c"]]),
        ("hello|world", [["hello"], ["world"]]),
        ("say (hello|world) twice", [["say ", "hello", " twice"], ["say ", "world", " twice"]]),
        ("(abc)?def", [["def"]]),
        ("(abc)+def", [["abc", "def"]]),
        ("(?:abc)(?P<n>def)", [["abc", "def"]]),
        ("abc[def]ghi", [["abc", "ghi"]]),
        ("abc[]d|]ghi", [["abc", "ghi"]]),
        ("abc[^]()|]ghi", [["abc", "ghi"]]),
        (r"abc[\]|]ghi", [["abc", "ghi"]]),
        ("abc[[:alpha:]|]ghi", [["abc", "ghi"]]),
        (r"abc\d+def", [["abc", "def"]]),
        (r"abc\.def", [["abc.def"]]),
        (r"abc\x41def\x{263a}ghi", [["abc", "def", "ghi"]]),
        (r"\bword\b", [["word"]]),
        (r"\p{Greek}abc\pLdef", [["abc", "def"]]),
        ("abc|", [["abc"], []]),
        ("du(?s)ck", [["duck"]]),
        ("duck(?s)|(?U)swan", [["duck"], ["swan"]]),
        ("ab{٣}c", [["ab{٣}c"]]),
        ("", [[]]),
        ("a{,3}bc", [["a{,3}bc"]]),
        ("a{x}bc", [["a{x}bc"]]),
    ],
)
def test_regular_expressions_are_split_into_required_parts(pattern: str, parts: list[list[str]]) -> None:
    assert said(pattern) == parts


@pytest.mark.parametrize(
    "pattern",
    [
        *("(abc", "abc)", "*abc", "abc**", r"\Qabc\E", r"\101", "(?=abc)def", "[abc", "abc\\", r"\8", "a++b"),
        *("abc(?i)?", "abc(?s)*", "abc(?-i)+?", "(abc(?m){2})", "(?)*abc", "(?<n>abc)"),
        *("abc{1001}", "abc[b-a]", "(abc{500}){3}", r"abc\p{Nothing}", "abc\ud800"),
    ],
)
def test_unsupported_patterns_require_nothing(pattern: str) -> None:
    assert regex_parts(pattern).alternatives == NOTHING


def test_too_many_alternatives_and_deep_groups_require_nothing() -> None:
    assert regex_parts("|".join(f"abc{i}" for i in range(17))).alternatives == NOTHING
    assert said("(abc|def)" * 5) == said("(abc|def)" * 4)
    assert regex_parts("(" * 5000 + "abc" + ")" * 5000).alternatives == NOTHING


@pytest.mark.parametrize("pattern", ["(?i)abc", "abc(?i)def", "abc(?i:def)", "(?s-m)(?im)abc"])
def test_a_case_flag_makes_the_whole_pattern_case_insensitive(pattern: str) -> None:
    assert regex_parts(pattern).any_case
    assert not regex_parts(pattern.replace("i", "")).any_case


def test_words_of_all_alternatives() -> None:
    assert Parts((("hello", "wo"), ("world",))).words() == [("hello",), ("world",)]
    assert Parts((("hello",), ("wo",))).words() is None
    assert Parts(()).words() is None
    assert Parts((("kind",),), any_case=True).words() is None


ATOMS = st.sampled_from([*"abcd", ".", "[ab]", "[^c]", r"\w", "^", "$", "ab", "cd", r"\.", "(?i)", r"\b"])
REPEATS = st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{0,1}", "{1,}", "+?"])


@st.composite
def sequences(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    return "".join(draw(inner) + draw(REPEATS) for _ in range(draw(st.integers(1, 4))))


def alternations(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    choices = st.lists(sequences(inner), min_size=1, max_size=3).map("|".join)
    return choices.flatmap(lambda text: st.sampled_from([f"({text})", f"(?:{text})"]))


PATTERNS = sequences(st.recursive(ATOMS, alternations, max_leaves=6))


@given(pattern=PATTERNS, seed=st.integers(0, 1000))
def test_matching_strings_contain_the_parts_of_an_alternative(pattern: str, seed: int) -> None:
    rng = random.Random(seed)
    texts = ["".join(rng.choices("abcdABCD.", k=rng.randrange(8))) for _ in range(60)]
    try:
        matches = pc.match_substring_regex(pa.array(texts), pattern).to_pylist()
    except pa.ArrowInvalid:
        return  # RE2 refuses it
    parts = regex_parts(pattern)
    for text in (text for text, is_match in zip(texts, matches, strict=True) if is_match):
        own = text.lower() if parts.any_case else text
        each = [[part.lower() if parts.any_case else part for part in one] for one in parts.alternatives]
        assert any(all(part in own for part in one) for one in each), (pattern, text)


@given(pattern=st.text("ab%_", max_size=6), text=st.text("ab_%", max_size=8))
def test_strings_that_match_like_contain_its_parts(pattern: str, text: str) -> None:
    expression = "".join({"%": ".*", "_": "."}.get(each, each) for each in pattern)
    if re.fullmatch(expression, text):
        assert all(part in text for part in like_parts(pattern))
