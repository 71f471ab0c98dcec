"""Completes the tree of a full-text query: parts without a column search the columns with an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.text.columns import text_columns
from lance_duck.scan.text.query.tree import MOST_NESTED
from lance_duck.scan.text.route import indexed_text_columns
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.rest.fields import texts_of
from lance_duck.snapshot import Snapshot

_WORDS: Final = ("match", "phrase", "prefix")
_FUZZY: Final[Mapping[str, Any]] = {"fuzziness": 0, "max_expansions": 50, "prefix_length": 0}
"""Options of a match in one column, with their defaults."""


def completed_tree(tree: Mapping[str, Any], columns: Sequence[str] | None, snapshot: Snapshot) -> dict[str, Any]:
    """Return the tree of a query, with a column in each part.

    Args:
        tree: The tree in its JSON form.
        columns: Columns for parts without one. None means the columns with a full-text index, or the only text column.
        snapshot: The version of the table.

    Raises:
        InvalidInputError: A part needs a column, and there is none or several. Or the tree is nested too deeply.
        UnsupportedError: A fuzzy match has no column, and several columns have an index.
    """
    completed: dict[str, Any] = _completed(tree, columns or _default_columns(snapshot), 1)
    return completed


def _default_columns(snapshot: Snapshot) -> list[str]:
    indexed = list(indexed_text_columns(snapshot))
    if indexed:
        return indexed
    candidates = list(text_columns(snapshot.schema))
    return candidates if len(candidates) == 1 else []


def _completed(tree: Any, columns: Sequence[str], depth: int) -> Any:
    if depth > MOST_NESTED:
        raise InvalidInputError("the query is nested too deeply", expected=f"at most {MOST_NESTED} levels")
    if not isinstance(tree, Mapping):
        raise RequestError("malformed query", where="full_text_query", expected="an object", found=repr(tree)[:200])
    return {kind: _part(kind, value, columns, depth) for kind, value in _shaped(tree, columns).items()}


def _shaped(tree: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return a tree whose nulls are removed, and whose match without a column is a match in several columns."""
    shaped = {str(kind): value for kind, value in tree.items() if value is not None}
    match = shaped.get("match")
    if list(shaped) == ["match"] and isinstance(match, Mapping) and match.get("column") is None and len(columns) > 1:
        return {"multi_match": {"match_queries": [{**match, "column": column} for column in columns]}}
    return shaped


def _part(kind: str, value: Any, columns: Sequence[str], depth: int) -> Any:
    if not isinstance(value, Mapping):
        return value
    given = {str(name): each for name, each in value.items() if each is not None or name == "fuzziness"}
    if kind in _WORDS:
        return _with_one_column(given, columns, kind)
    if kind == "multi_match":
        return _without_fuzziness(given)
    if kind == "boolean":
        lists = {name: _completed_list(each, columns, depth) for name, each in given.items()}
        return {name: each for name, each in lists.items() if each}
    if kind == "boost":
        parts = ("positive", "negative")
        return {name: _completed(each, columns, depth + 1) if name in parts else each for name, each in given.items()}
    return given


def _completed_list(value: Any, columns: Sequence[str], depth: int) -> Any:
    return [_completed(each, columns, depth + 1) for each in value] if isinstance(value, list) else value


def _with_one_column(value: dict[str, Any], columns: Sequence[str], kind: str) -> dict[str, Any]:
    if "column" in value:
        return value
    if len(columns) != 1:
        raise InvalidInputError(
            f"{kind} needs a column",
            where="full_text_query",
            found=", ".join(columns) or "no column with an index",
            remedy=None if columns else "name a column, or create a full-text index",
        )
    return {**value, "column": columns[0]}


def _without_fuzziness(value: dict[str, Any]) -> dict[str, Any]:
    """Return a match in several columns without options that only a match in one column has."""
    queries = value.get("match_queries")
    if not isinstance(queries, list):
        if "boost" in value:  # LanceDB's name for the weights of the columns
            value["boosts"] = value.pop("boost")
        return {**value, "columns": texts_of(value, "columns")} if "columns" in value else value
    plain = []
    for query in queries:
        inner = query.get("match", query) if isinstance(query, Mapping) else query
        if not isinstance(inner, Mapping):
            raise RequestError("malformed query", where="match_queries", expected="an object", found=repr(query)[:200])
        for name, default in _FUZZY.items():
            if name in inner and inner[name] != default and not (inner[name] is None and name != "fuzziness"):
                raise UnsupportedError(f"{name} is not supported in several columns", where="full_text_query")
        plain.append({name: each for name, each in inner.items() if name not in _FUZZY and each is not None})
    return {**value, "match_queries": plain}
