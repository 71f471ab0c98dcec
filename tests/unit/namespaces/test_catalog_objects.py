"""Views, macros and types as JSON."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import Any

import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.namespaces import (
    CatalogObject,
    MacroDefinition,
    ObjectKey,
    TableMacroDefinition,
    TypeDefinition,
    ViewDefinition,
)
from lance_duck.namespaces.catalog_objects import LONGEST, check_name, from_json, stored_objects, to_json

VIEW = ViewDefinition(
    name=("s", "v"),
    query="SELECT i, s\nFROM t -- größer",
    columns=("a", "b"),
    comment="c",
    column_comments={"a": "…"},
    schema=(("a", "INTEGER"), ("b", "VARCHAR")),
    engine="duckdb 2.0.1",
    uuid="u",
    created_ms=1795876000000,
    default_namespace_path=("s",),
)
STORED = [
    (
        VIEW,
        "lance_duck.object.view.s$v",
        '{"column_comments":{"a":"…"},"columns":["a","b"],"comment":"c","created_ms":1795876000000,'
        '"default_namespace_path":["s"],"dialect":"duckdb","engine":"duckdb 2.0.1",'
        '"query":"SELECT i, s\\nFROM t -- größer","schema":[["a","INTEGER"],["b","VARCHAR"]],"uuid":"u"}',
    ),
    (
        MacroDefinition(name="m", definitions="(a, b := 2) AS a + b", engine="duckdb 2.0.1"),
        "lance_duck.object.macro.m",
        '{"comment":null,"default_namespace_path":[],"definitions":"(a, b := 2) AS a + b","dialect":"duckdb",'
        '"engine":"duckdb 2.0.1"}',
    ),
    (
        TableMacroDefinition(name="m", definitions="(n) AS TABLE SELECT n"),
        "lance_duck.object.table_macro.m",
        '{"comment":null,"default_namespace_path":[],"definitions":"(n) AS TABLE SELECT n","dialect":"duckdb",'
        '"engine":null}',
    ),
    (
        TypeDefinition(name="s$a.b", definition="ENUM ('a', 'b')"),
        "lance_duck.object.type.s$a.b",
        """{"comment":null,"definition":"ENUM ('a', 'b')","dialect":"duckdb"}""",
    ),
]


@pytest.mark.parametrize(("stored", "setting", "text"), STORED, ids=[each[1] for each in STORED])
def test_an_object_is_sorted_json_without_blanks(stored: CatalogObject, setting: str, text: str) -> None:
    assert (stored.key.setting, to_json(stored)) == (setting, text)
    assert list(stored_objects({setting: text, "other": "x", "lance_duck.object.view.w": ""})) == [(stored.key, text)]
    assert from_json(stored.key, text) == stored


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("view", "{", "Expecting property name"),
        ("view", "[]", r"expected a JSON object, found \[\]"),
        ("view", '"x"', "expected a JSON object"),
        ("view", "{}", "query is missing"),
        ("view", '{"query":1}', "query: expected a string, found 1"),
        ("view", '{"query":null}', "query: expected a string, found None"),
        ("view", '{"query":"\\ud800"}', "query: expected a string"),
        ("view", '{"query":"","columns":"ab"}', "columns: expected a list of strings, found 'ab'"),
        ("view", '{"query":"","columns":[1]}', "columns: expected a list of strings"),
        ("view", '{"query":"","schema":[["a"]]}', "schema: expected a list of pairs of strings"),
        ("view", '{"query":"","schema":[["a","b","c"]]}', "schema: expected a list of pairs of strings"),
        ("view", '{"query":"","schema":{"a":"b"}}', "schema: expected a list of pairs of strings"),
        ("view", '{"query":"","created_ms":true}', "created_ms: expected a number, found True"),
        ("view", '{"query":"","created_ms":1.5}', "created_ms: expected a number"),
        ("view", '{"query":"","created_ms":' + "9" * 5000 + "}", "Exceeds the limit"),
        ("view", '{"query":"","column_comments":{"a":1}}', "column_comments: expected strings by name"),
        ("view", '{"query":"","column_comments":[]}', "column_comments: expected strings by name"),
        ("view", '{"query":' + "[" * 100_000, "recursion|Expecting value"),
        ("macro", '{"definitions":["x"]}', "definitions: expected a string"),
        ("type", '{"definition":{}}', "definition: expected a string"),
        ("sequence", "{}", "unknown kind of object, 'sequence'"),
        ("", "{}", "unknown kind of object, ''"),
    ],
)
def test_json_that_is_not_an_object_gives_the_reason(kind: str, text: str, reason: str) -> None:
    found = from_json(ObjectKey(kind, ("v",)), text)
    assert isinstance(found, str)
    assert re.search(reason, found)
    assert len(found) < 200


def test_unknown_keys_are_ignored_and_missing_ones_have_defaults() -> None:
    found = from_json(ObjectKey("view", ("v",)), '{"query":"SELECT 1","later":[1]}')
    assert found == ViewDefinition(name="v", query="SELECT 1")


@pytest.mark.parametrize(
    "values",
    [{"query": 1}, {"query": "\ud800"}, {"columns": [1]}, {"schema": ["ab"]}, {"column_comments": {1: "a"}}],
)
def test_a_wrong_field_is_rejected(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="invalid definition of view v"):
        to_json(ViewDefinition(**{"name": "v", "query": "", **values}))


def test_any_list_or_mapping_is_accepted() -> None:
    given: Any = {"columns": ["a"], "schema": [["a", "INT"]], "column_comments": MappingProxyType({"a": "c"})}
    values = json.loads(to_json(ViewDefinition(name=["v"], query="", **given)))  # type: ignore[arg-type]
    assert (values["columns"], values["schema"], values["column_comments"]) == (["a"], [["a", "INT"]], {"a": "c"})


def test_a_definition_has_a_maximum_size() -> None:
    to_json(TypeDefinition(name="t", definition="x" * (LONGEST - 100)))
    with pytest.raises(InvalidInputError, match="the definition of type t is too long: expected at most 1,048,576"):
        to_json(TypeDefinition(name="t", definition="ü" * (LONGEST // 2)))


@pytest.mark.parametrize("name", [("a b",), ("größe",), ("SELECT",), ("a.b",), ('"',), ("s", "a-b")])
def test_names_that_are_accepted(name: tuple[str, ...]) -> None:
    check_name(ObjectKey("view", name))


@pytest.mark.parametrize("name", [(), ("",), ("a$b",), ("\0",), ("\ud800",), ("s", "größe"), ("s", "a b"), ("s", "..")])
def test_names_that_are_rejected(name: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError):
        check_name(ObjectKey("view", name))
