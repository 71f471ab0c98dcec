"""A regular expression of any form finds by an n-gram index the rows that a scan finds."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.duck.statement.identifiers import literal
from lance_duck.errors import InvalidInputError
from lance_duck.text.patterns import regex_parts

WORDS = ("duck", "Duck", "DUCK", "stop", "\u017ftop", "kelvin", "\u212aelvin", "straße", "日本", "ab12", "a{2}", "a+b")
FLAGS = ("(?i)", "(?s)", "(?m)", "(?U)", "(?-i)", "(?i-s)", "(?im)", "(?)")
GROUPS = ("(", "(?:", "(?i:", "(?-i:", "(?s-i:", "(?P<n>", "(?<n>", "(?i", "(?=", "(?#", "(?>")
ESCAPES = (
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", r"\A", r"\z", r"\Z", r"\C", r"\n", r"\t", r"\a"),
    *(r"\pL", r"\p{Greek}", r"\p{^Lu}", r"\PN", r"\x64", r"\x{75}", r"\x{212a}", r"\141", r"\07", r"\1", r"\8"),
    *(r"\.", r"\+", r"\{", r"\_", r"\ ", r"\é", r"\Qduck\E", r"\Qa+\E", r"\Qdu", r"\E", r"\x", r"\u0041", "\\"),
)
SETS = ("[dk]", "[^d]", "[a-z]", "[]d]", "[^]d]", "[[:alpha:]]", "[[:^alpha:]x]", r"[\w-]", r"[\]d]", "[d-]", "[[.d.]]")
REPEATS = ("?", "*", "+", "??", "*?", "+?", "?+", "*+", "++", "{2}", "{1}", "{0}", "{0,}", "{1,}?", "{0,2}", "{1,3}")
ODD_REPEATS = ("{,2}", "{2,1}", "{x}", "{", "}", "{\u0660}", "{0", "{ 0}", "**", "{0}{2}", "{2}?", "{00}", "{1001}")


def random_expression(rng: random.Random, depth: int = 3) -> str:
    """Return a regular expression in RE2 syntax, sometimes slightly invalid."""
    branches = [
        "".join(_repeated(rng, depth) for _ in range(rng.randrange(4))) for _ in range(rng.choice((1, 1, 1, 2, 3)))
    ]
    return "|".join(branches)


def _repeated(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if kind < 0.45:
        atom = rng.choice(WORDS) if rng.random() < 0.7 else rng.choice("dDuUcCkKsS\u212a\u017f12]}日")
    elif kind < 0.55:
        atom = rng.choice(("", "duck", "stop")) + rng.choice(FLAGS)
    elif kind < 0.8 and depth:
        atom = rng.choice(GROUPS) + random_expression(rng, depth - 1) + ")"
    elif kind < 0.87:
        atom = rng.choice(SETS)
    else:
        atom = rng.choice(ESCAPES) if rng.random() < 0.6 else rng.choice((".", "^", "$", "(", ")", "[", "|"))
    if rng.random() < 0.35:
        atom += rng.choice(REPEATS) if rng.random() < 0.85 else rng.choice(ODD_REPEATS)
    return atom


def random_text(rng: random.Random) -> str:
    """Return a short text of the words that expressions have, some letters left out or in another case."""
    letters = [each for _ in range(rng.randrange(1, 4)) for each in rng.choice(WORDS)]
    kept = [each.swapcase() if rng.random() < 0.08 else each for each in letters if rng.random() > 0.12]
    return "".join(kept)[: rng.choice((3, 8, 14))]


TEXTS = [random_text(random.Random(seed)) for seed in range(1500)]


@given(seed=st.integers(0, 1 << 32))
def test_strings_that_re2_matches_contain_the_required_parts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        expression = random_expression(rng)
        parts = regex_parts(expression)
        try:
            found = pc.match_substring_regex(pa.array(TEXTS), expression)
        except (pa.ArrowInvalid, UnicodeError):
            continue  # RE2 refuses it
        for text in pa.array(TEXTS).filter(found).to_pylist():
            own = text.lower() if parts.any_case else text
            each = [[part.lower() if parts.any_case else part for part in one] for one in parts.alternatives]
            is_kept = any(all(part in own for part in one if part.isascii()) for one in each)
            assert is_kept or "\u017f" in text or "\u212a" in text, (expression, text)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    rows = pa.table({"n": range(len(TEXTS)), "s": TEXTS})
    dataset = ld.write_dataset(rows, str(tmp_path_factory.mktemp("expressions") / "t.lance"))
    dataset.create_scalar_index("s", "NGRAM")
    return dataset


def rows_of(dataset: ld.LanceDataset, condition: object, *, by_index: bool) -> list[int] | None:
    """Return the numbers of the rows that satisfy a condition.

    Returns None if RE2 rejects the condition.
    """
    try:
        numbers: list[int] = dataset.to_table(["n"], filter=condition, use_scalar_index=by_index)["n"].to_pylist()
    except InvalidInputError:
        return None
    return numbers


CONDITIONS = (
    "s ~ {}",
    "s SIMILAR TO {}",
    "regexp_matches(s, {})",
    "regexp_matches(s, {}, 'i')",
    "regexp_matches(s, {}, 'l')",
    "regexp_full_match(s, {})",
    "regexp_matches(lower(s), {})",
)


@given(seed=st.integers(0, 1 << 32))
def test_an_index_and_a_scan_agree_on_every_regular_expression(indexed: ld.LanceDataset, seed: int) -> None:
    rng = random.Random(seed)
    expression = random_expression(rng)
    condition = rng.choice(CONDITIONS).format(literal(expression))
    assert rows_of(indexed, condition, by_index=True) == rows_of(indexed, condition, by_index=False)
    arrow = pc.match_substring_regex(pc.field("s"), expression, ignore_case=rng.random() < 0.3)
    assert rows_of(indexed, arrow, by_index=True) == rows_of(indexed, arrow, by_index=False)


@pytest.mark.parametrize(
    "expression",
    [
        "duck(?i)?",
        "duck(?s)*",
        "(?:duck(?i)?)st",
        "duck(?i){0}",
        "(duck)(?i)?",
        "du(?P<n>ck(?m)*)",
        "duck(?)?",
        "x|duck(?U)*",
    ],
)
def test_a_quantifier_after_a_flag_group_applies_to_the_preceding_token(
    indexed: ld.LanceDataset, expression: str
) -> None:
    condition = f"regexp_matches(s, {literal(expression)})"
    found = rows_of(indexed, condition, by_index=True)
    assert found
    assert found == rows_of(indexed, condition, by_index=False)
