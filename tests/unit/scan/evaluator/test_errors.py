"""SQL errors refer to the user's text, in every verb that accepts SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnknownColumnError

ROWS = pa.table({"id": [1, 2], "fare": [1.0, 2.0], "city": ["Kyoto", "Oslo"], "s": [{"a": 1}, {"a": 2}]})
NEW = pa.table({"id": [1], "fare": [5.0]})

Verb = Callable[[ld.LanceDataset, str], object]
VERBS: dict[str, Verb] = {
    "filter": lambda table, text: table.to_table(filter=text),
    "count": lambda table, text: table.count_rows(text),
    "columns": lambda table, text: table.to_table(columns={"z": text}),
    "delete": lambda table, text: table.delete(text),
    "update": lambda table, text: table.update({"fare": text}),
    "where": lambda table, text: table.update({"fare": "0"}, where=text),
    "add_columns": lambda table, text: table.add_columns({"z": text}),
    "merge": lambda table, text: table.merge_insert("id").when_matched_update_all(text).execute(NEW),
    "by source": lambda table, text: table.merge_insert("id").when_not_matched_by_source_delete(text).execute(NEW),
}
ADDED = ("WHERE", "FROM", "SELECT", "CAST", "__lance", " AS answer", "LINE 1", "\n")
"""SQL words that wrap a user expression."""


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, tmp_path / "t.lance", storage_options={"fsync": "false"})


@pytest.fixture(params=VERBS)
def verb(request: pytest.FixtureRequest) -> Verb:
    return VERBS[request.param]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id >", "syntax error at the end: something is missing"),
        ("(1) >", "syntax error at the end: something is missing"),
        ("id >\n", "syntax error at the end: something is missing"),
        ("sum(1) > 0", "aggregates are not allowed here"),
        ("(1 > 0) && (2 > 1)", "found && between BOOLEAN, BOOLEAN; conditions are joined by AND and OR"),
        ("(1 > 0) | (2 > 1)", "found | between BOOLEAN, BOOLEAN; conditions are joined by AND and OR"),
        ("!(1 > 0)", "found !; a condition is negated by NOT"),
        ("1 IS None", 'syntax error at or near "None"; a missing value is found by IS NULL'),
        ("isin(1, [2])", "found isin; values are listed by IN"),
        ("match('a', 'b')", "found match; words are found by search(…)"),
        ("(1", "a '(' that is not closed"),
        ("1)", "a ')' that closes nothing"),
        ("", "an empty string"),
    ],
)
def test_errors_refer_to_the_filter_of_the_user(verb: Verb, text: str, said: str, table: ld.LanceDataset) -> None:
    with pytest.raises(InvalidInputError) as raised:
        verb(table, text)
    message = str(raised.value)
    assert said in message
    assert repr(text) in message
    assert not [word for word in ADDED if word in message]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("new", "strings need single quotes"), ("None", "a missing value is written NULL, and found by IS NULL")],
)
def test_an_unknown_name_in_an_assignment_suggests_quotes(table: ld.LanceDataset, text: str, remedy: str) -> None:
    with pytest.raises(UnknownColumnError, match=f"; {remedy}$"):
        table.update({"city": text})


@pytest.mark.parametrize("verb", ["filter", "delete", "where", "by source"], indirect=True)
def test_a_failed_conversion_quotes_the_filter(verb: Verb, table: ld.LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="Could not convert string 'Kyoto' to INT32") as raised:
        verb(table, "city::INT > 3")
    assert str(raised.value).startswith("'city::INT > 3': ")


@pytest.mark.parametrize("verb", ["filter", "columns", "delete", "update", "where", "add_columns"], indirect=True)
def test_an_unknown_column_suggests_the_nearest_name(verb: Verb, table: ld.LanceDataset) -> None:
    with pytest.raises(UnknownColumnError, match=r"no column 'cty': expected one of id, .*did you mean 'city'\?"):
        verb(table, "cty = 'Oslo'")


def test_an_unknown_struct_field_suggests_its_path(table: ld.LanceDataset) -> None:
    with pytest.raises(UnknownColumnError, match=r"did you mean 's\.a'\?"):
        table.to_table(filter="a = 1")
    with pytest.raises(UnknownColumnError, match=r"did you mean 'source\.fare' or 'target\.fare'\?"):
        VERBS["merge"](table, "fare > 1")


def test_double_quoted_strings_get_a_hint(table: ld.LanceDataset) -> None:
    with pytest.raises(UnknownColumnError, match="strings need single quotes"):
        table.to_table(filter='city = "Kyoto"')


def test_errors_in_subqueries_refer_to_the_filter(table: ld.LanceDataset) -> None:
    with pytest.raises(InvalidInputError) as raised:
        table.delete("id IN (SELECT nope FROM target)")
    assert '"nope" not found!' in str(raised.value)
    assert "FROM clause" not in str(raised.value)
    with pytest.raises(InvalidInputError, match="aggregates are not allowed here"):
        table.update({"fare": "sum((SELECT 1))"})
    with pytest.raises(InvalidInputError, match="syntax error at the end"):
        table.delete("id IN (SELECT id FROM target) AND")
