"""The tables that DuckDB's binder and parser find in a statement, compared with `Scopes`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import duckdb

from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.nearest_clause import KNOWS_NEAREST
from lance_duck.duck.statement.scope import Scopes
from lance_duck.duck.statement.tokens import tokens_of

Named = tuple[tuple[str, ...], str]
"""Parts of a table's name, and its alias; folded."""
_WITHOUT_PLAN: Final = frozenset({"describe", "summarize", "truncate"})
"""Statements whose plan does not scan the named tables."""
_SCANS: Final = ("SEQ_SCAN", "INDEX_SCAN")


def differences(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str] | None:
    """Return where `Scopes` and DuckDB disagree. None if DuckDB refuses the statement.

    Args:
        connection: A connection with the tables of the statement.
        sql: A single statement.
    """
    scopes = Scopes(tokens_of(sql))
    try:
        with connection.cursor() as cursor:  # an error would end what DuckDB 1.5 takes for a transaction
            bound = {_named(name) for name in cursor.get_table_names(sql, qualified=True)}
    except duckdb.Error:
        return _differences_of_change(connection, scopes, sql)
    found = _differences_of_names(scopes, bound, _created(scopes))
    return found + _differences_of_selects(scopes, _parsed(connection, sql))


def _differences_of_names(scopes: Scopes, bound: set[Named], created: str | None) -> list[str]:
    read = {
        ((folded(table.path or ""),) if table.name is None else _folded(table.name), folded(table.alias))
        for table in scopes.tables
        if table.name is not None or table.path is not None
    }
    missing = [name for name in bound - read if name[1] not in ("", created) and "/" not in name[0][0]]
    more = [name for name in read - bound if "/" not in name[0][0]]
    return [f"only DuckDB: {name}" for name in missing] + [f"only Scopes: {name}" for name in more]


def _renamed(scopes: Scopes) -> set[str]:
    """Return the names of tables with renamed columns, `t AS x(a)`, which `Scopes` leaves out."""
    ends = [table.end for table in scopes.tables if table.is_called and scopes.text(table.end) == "("]
    names = (scopes.name(end - 3 if scopes.word(end - 2) == "as" else end - 2) for end in ends)
    return {folded(name) for name in names if name is not None}


def _created(scopes: Scopes) -> str | None:
    """Return the name of a created or wholly copied table, which DuckDB reports and `Scopes` does not."""
    if scopes.word(0) == "copy":
        return folded(_last_name(scopes, 1))
    if scopes.word(0) != "create":
        return None
    place = next((place for place in range(len(scopes.tokens)) if scopes.word(place) == "table"), 0) + 1
    while scopes.word(place) in ("if", "not", "exists"):
        place += 1
    return folded(_last_name(scopes, place))


def _last_name(scopes: Scopes, place: int) -> str:
    """Return the last part of the qualified name at a position."""
    while scopes.text(place + 1) == ".":
        place += 2
    return scopes.name(place) or ""


def _named(text: str) -> Named:
    """Parse a name as DuckDB reports it: `schema.name AS alias`. The alias is empty if columns are renamed as well."""
    tokens = tokens_of(text)
    end = next((place for place, token in enumerate(tokens) if token.word in ("as", "tablesample")), len(tokens))
    parts = _folded([token.name or "" for token in tokens[:end:2]])
    if end == len(tokens) or tokens[end].word == "tablesample":
        return parts, parts[-1]
    renames = end + 2 < len(tokens) and tokens[end + 2].text == "("
    return parts, "" if renames else folded(tokens[end + 1].name or "")


def _folded(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(folded, parts))


def _differences_of_change(connection: duckdb.DuckDBPyConnection, scopes: Scopes, sql: str) -> list[str] | None:
    """Compare the tables of a change with the scans in its plan."""
    if not KNOWS_NEAREST or any(token.word in _WITHOUT_PLAN for token in scopes.tokens):
        return None  # DuckDB 1.5 crashes when it shows some plans
    try:
        plan = connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchone()
    except duckdb.Error:
        return None
    assert plan is not None
    scanned = set(_scanned(json.loads(plan[1])))
    read = {folded(table.name[-1]) for table in scopes.tables if table.name is not None}
    missing = scanned - read - _renamed(scopes) - _inserted(scopes)
    return [f"only DuckDB: {name}" for name in missing] + [f"only Scopes: {name}" for name in read - scanned]


def _inserted(scopes: Scopes) -> set[str]:
    """Return the insert target: plans with ON CONFLICT scan it, and `Scopes` leaves it out."""
    place = next((place for place in range(len(scopes.tokens)) if scopes.word(place) == "into"), None)
    if place is None or scopes.word(place - 1) == "merge":
        return set()
    return {folded(_last_name(scopes, place + 1))}


def _scanned(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _scanned(each)
        return
    table = node.get("extra_info", {}).get("Table")
    if table is not None and node["name"].strip() in _SCANS:
        yield folded(tokens_of(str(table))[-1].name or "")
    yield from _scanned(node.get("children", []))


def _parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
    assert row is not None
    return json.loads(row[0]).get("statements", [])


def _differences_of_selects(scopes: Scopes, tree: Any) -> list[str]:
    """Compare the tables of the SELECT around each column with the tables in its scope."""
    if not scopes.tokens:
        return []
    source = scopes.tokens[0].source
    starts = {len(source[: token.start].encode()): place for place, token in enumerate(scopes.tokens)}
    found = []
    for columns, items in _selects(tree):
        if items == [""] or any("/" in item for item in items):  # ARRAY of a set operation; a file
            continue
        for names, location in columns:
            place = starts.get(location)
            if place is None or folded(scopes.name(place) or "") != folded(names[0]):
                continue
            scope = scopes.scope_of(place)
            aliases = [folded(table.alias) for table in scope.tables]
            first = scopes.text(scope.start).lower()
            if not aliases and first in ("(", "describe", "summarize"):  # ORDER BY of a query in parentheses
                continue
            if items not in (aliases, [*aliases, ""]):  # the parser makes a SELECT of PIVOT as a statement
                found.append(f"{'.'.join(names)} at {location}: DuckDB {items}, Scopes {aliases}")
    return found


def _selects(node: Any) -> Iterator[tuple[list[tuple[list[str], int]], list[str]]]:
    """Yield the columns of each SELECT with their positions, and the aliases of its FROM in order."""
    if isinstance(node, list):
        for each in node:
            yield from _selects(each)
    elif isinstance(node, Mapping):
        if node.get("type") == "SELECT_NODE":
            yield (
                list(_columns({**node, "cte_map": None, "from_table": None})) + list(_conditions(node["from_table"])),
                list(_items(node["from_table"])),
            )
        for each in node.values():
            yield from _selects(each)


def _columns(node: Any) -> Iterator[tuple[list[str], int]]:
    """Yield the columns of a SELECT, without those in its subqueries."""
    if isinstance(node, list):
        for each in node:
            yield from _columns(each)
    elif isinstance(node, Mapping):
        if node.get("class") == "COLUMN_REF":
            yield node["column_names"], node["query_location"]
        for name, each in node.items():
            if name != "subquery":
                yield from _columns(each)


def _conditions(item: Mapping[str, Any] | None) -> Iterator[tuple[list[str], int]]:
    if item is not None and item["type"] == "JOIN":
        yield from _columns(item["condition"])
        yield from _conditions(item["left"])
        yield from _conditions(item["right"])


def _items(item: Mapping[str, Any] | None) -> Iterator[str]:
    if item is None or item["type"] == "EMPTY":
        return
    if item["type"] == "JOIN":
        yield from _items(item["left"])
        yield from _items(item["right"])
    else:
        yield from _items(item.get("source"))
        yield folded(item["alias"] or item.get("table_name") or "")
