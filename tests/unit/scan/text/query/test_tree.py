"""The classes of queries: names, defaults, checks, operators."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

import pytest

from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    FullTextQueryType,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    PrefixQuery,
)

ALPHA, BETA = MatchQuery("alpha", "a"), MatchQuery("beta", "b")


def test_a_match_query_has_the_defaults_of_pylance() -> None:
    query = MatchQuery("words", "body")
    assert (query.boost, query.fuzziness, query.max_expansions, query.prefix_length) == (1.0, 0, 50, 0)
    assert query.operator is FullTextOperator.OR
    assert query.document_granularity is None
    assert MatchQuery("words", "body", fuzziness=None).fuzziness is None


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (ALPHA, FullTextQueryType.MATCH),
        (PrefixQuery("al", "a"), FullTextQueryType.PREFIX),
        (PhraseQuery("alpha beta", "a"), FullTextQueryType.MATCH_PHRASE),
        (BoostQuery(ALPHA, BETA), FullTextQueryType.BOOST),
        (MultiMatchQuery("alpha", ["a", "b"]), FullTextQueryType.MULTI_MATCH),
        (CombinedFieldsQuery("alpha", ["a", "b"]), FullTextQueryType.COMBINED_FIELDS),
        (BooleanQuery([(Occur.MUST, ALPHA)]), FullTextQueryType.BOOLEAN),
    ],
)
def test_queries_report_their_type_and_can_be_pickled_and_compared(
    query: FullTextQuery, kind: FullTextQueryType
) -> None:
    assert query.query_type() is kind
    copy = pickle.loads(pickle.dumps(query))
    assert copy == query
    assert hash(copy) == hash(query)


def test_operators_build_boolean_queries() -> None:
    assert BooleanQuery([(Occur.MUST, ALPHA), (Occur.MUST, BETA)]) == ALPHA & BETA
    assert BooleanQuery([(Occur.SHOULD, ALPHA), (Occur.SHOULD, BETA)]) == ALPHA | BETA
    assert (ALPHA & BETA).columns_searched == ("a", "b")


def test_query_members_may_be_given_as_strings() -> None:
    assert MatchQuery("x", "a", operator="and").operator is FullTextOperator.AND  # type: ignore[arg-type]
    query = MatchQuery("x", "a", document_granularity="row")  # type: ignore[arg-type]
    assert query.document_granularity is DocumentGranularity.ROW
    assert BooleanQuery([("must", ALPHA)]).queries == ((Occur.MUST, ALPHA),)  # type: ignore[list-item]


def test_a_multi_column_query_expands_to_one_query_per_column() -> None:
    query = MultiMatchQuery("x", ["a", "b"], boosts=[1, 2], operator=FullTextOperator.AND)
    assert query.match_queries == (
        MatchQuery("x", "a", operator=FullTextOperator.AND),
        MatchQuery("x", "b", boost=2.0, operator=FullTextOperator.AND),
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: MatchQuery(5, "a"),  # type: ignore[arg-type]
        lambda: MatchQuery("x", None),  # type: ignore[arg-type]
        lambda: MatchQuery("x", "a", boost="2"),  # type: ignore[arg-type]
        lambda: MatchQuery("x", "a", fuzziness=1.5),  # type: ignore[arg-type]
        lambda: MatchQuery("x", "a", fuzziness=True),
        lambda: MatchQuery("x", "a", analyzer="code"),  # type: ignore[arg-type]
        lambda: MatchQuery("x", "a", operator=5),  # type: ignore[arg-type]
        lambda: PhraseQuery("x", "a", slop=None),  # type: ignore[arg-type]
        lambda: MultiMatchQuery("x", "a"),
        lambda: MultiMatchQuery("x", [1]),  # type: ignore[list-item]
        lambda: MultiMatchQuery("x", ["a"], boosts=5),  # type: ignore[arg-type]
        lambda: CombinedFieldsQuery("x", ["a"], boosts="1"),  # type: ignore[arg-type]
        lambda: BoostQuery(ALPHA, "x"),  # type: ignore[arg-type]
        lambda: BooleanQuery(None),  # type: ignore[arg-type]
        lambda: BooleanQuery([ALPHA]),  # type: ignore[list-item]
        lambda: BooleanQuery([(Occur.MUST, "x")]),  # type: ignore[list-item]
        lambda: ALPHA & 5,  # type: ignore[operator]
    ],
)
def test_values_of_wrong_types_are_rejected(make: Callable[[], Any]) -> None:
    with pytest.raises(WrongTypeError):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MatchQuery("x", "a", boost=-1), "0 or more"),
        (lambda: MatchQuery("x", "a", boost=math.nan), "finite"),
        (lambda: MatchQuery("x", "a", boost=1e39), "finite"),
        (lambda: MatchQuery("x", "a", fuzziness=-1), "from 0"),
        (lambda: MatchQuery("x", "a", max_expansions=1 << 40), "from 0"),
        (lambda: MatchQuery("x", "a", operator="XOR"), "'AND' or 'OR'"),  # type: ignore[arg-type]
        (lambda: MatchQuery("\ud800", "a"), "a lone surrogate"),
        (lambda: PhraseQuery("x", "a", slop=-1), "from 0"),
        (lambda: MultiMatchQuery("x", []), "no columns"),
        (lambda: MultiMatchQuery("x", ["a"], boosts=[1, 2]), "number of boosts must match"),
        (lambda: CombinedFieldsQuery("x", []), "no columns"),
        (lambda: CombinedFieldsQuery("x", ["a", "a"]), "unique"),
        (lambda: CombinedFieldsQuery("x", ["a"], boosts=[0.5]), r"\[1, 1048576\]"),
        (lambda: BoostQuery(ALPHA, BETA, negative_boost=math.inf), "finite"),
        (lambda: BooleanQuery([]), "at least one should/must"),
        (lambda: BooleanQuery([(Occur.MUST_NOT, ALPHA)]), "at least one should/must"),
        (lambda: reduce(or_, [ALPHA] * 200), "the query is nested too deeply"),
    ],
)
def test_invalid_values_are_rejected(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_a_query_that_grows_exponentially_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="the query has too many clauses: expected at most 4096"):
        reduce(lambda query, _: query & query, range(40), ALPHA)


def test_document_granularity_is_row_or_list_element() -> None:
    query = PhraseQuery("alfa", "a", document_granularity="LIST_ELEMENT")  # type: ignore[arg-type]
    assert query.document_granularity is DocumentGranularity.LIST_ELEMENT
    with pytest.raises(InvalidInputError, match="document_granularity: expected 'row' or 'list_element'"):
        PhraseQuery("alfa", "a", document_granularity="word")  # type: ignore[arg-type]


def test_a_query_object_of_another_package_is_rejected_with_a_remedy() -> None:
    foreign: Any = type("MatchQuery", (), {"__module__": "other.query"})()
    with pytest.raises(WrongTypeError, match=r"found other\.query\.MatchQuery; build it of lance_duck\.query"):
        BoostQuery(MatchQuery("alfa", "a"), foreign)


@pytest.mark.parametrize(("name", "value"), [("boost", True), ("fuzziness", False), ("prefix_length", False)])
def test_a_boolean_that_equals_the_default_is_not_a_number(name: str, value: bool) -> None:
    assert getattr(MatchQuery("word", "s"), name) == value

    with pytest.raises(WrongTypeError, match=name):
        MatchQuery("word", "s", **{name: value})
