from __future__ import annotations

import pytest

from lance_duck.duck.statement.call import Call
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.errors import InvalidInputError

Read = tuple[tuple[str, ...], list[str], dict[str, str]]


def call(sql: str) -> Call | None:
    return Call.of(Clauses.of(sql))


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("CALL f()", (("f",), [], {})),
        ("call Lance.Main.F('t')", (("lance", "main", "f"), ["'t'"], {})),
        ("CALL f('t', 3, k => 4)", (("f",), ["'t'", "3"], {"k": "4"})),
        ("CALL f(a := 1, B = ?, \"c\" => $x)", (("f",), [], {"a": "1", "b": "?", "c": "$x"})),
        ("CALL f(z=-1,y:=-1,x=>-1)", (("f",), [], {"z": "-1", "y": "-1", "x": "-1"})),
        ("CALL f(a::INT, b == 1, c <> 2)", (("f",), ["a::INT", "b == 1", "c <> 2"], {})),
        ("CALL f(g(1, x => 2), [3, 4], {'k': 5})", (("f",), ["g(1, x => 2)", "[3, 4]", "{'k': 5}"], {})),
        ("CALL f(x => INTERVAL 3 DAY -- , y => 1\n)", (("f",), [], {"x": "INTERVAL 3 DAY -- , y => 1"})),
    ],
)  # fmt: skip
def test_arguments_keep_their_source_text(sql: str, read: Read) -> None:
    found = call(sql)
    assert found is not None
    positional = [argument.text.strip() for argument in found.positional]
    assert (found.name, positional, {name: each.text.strip() for name, each in found.named.items()}) == read


@pytest.mark.parametrize(
    "sql", ["CALL f", "CALL f(1", "CALL f(1) x", "CALL 'x.lance'(1)", "SELECT f(1)", "CALL f(1)(2)"]
)
def test_text_that_is_not_one_call_gives_none(sql: str) -> None:
    assert call(sql) is None


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CALL f(a => 1, 2)", "positional arguments must come before"),
        ("CALL f(a => 1, A => 2)", "'a' is given twice"),
        ("CALL f(, 1)", "does not have a value"),
        ("CALL f(1,)", "does not have a value"),
    ],
)
def test_invalid_calls_are_rejected(sql: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call(sql)


def test_arguments_are_bound_to_parameters_in_the_order_of_these() -> None:
    found = call("CALL f('t', dry_run => true, older => 1)")
    assert found is not None
    bound = found.bound(("table", "older", "retain", "dry_run"), required=1)
    assert {name: each.text.strip() for name, each in bound.items()} == {
        "table": "'t'",
        "older": "1",
        "dry_run": "true",
    }
    assert list(bound) == ["table", "older", "dry_run"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CALL f()", "argument 'table' is missing"),
        ("CALL f(older => 1)", "argument 'table' is missing"),
        ("CALL f('t', 1, 2)", "too many arguments"),
        ("CALL f('t', yolder => 1)", "unknown argument 'yolder'.*table, older"),
        ("CALL f('t', table => 'u')", "'table' is given twice"),
    ],
)
def test_arguments_that_do_not_match_the_parameters_are_rejected(sql: str, message: str) -> None:
    found = call(sql)
    assert found is not None
    with pytest.raises(InvalidInputError, match=message):
        found.bound(("table", "older"), required=1)
