"""Calls of `lance_vector_search` with constants and parameters. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lance_duck.duck.rules.order_by_distance import LISTED, Key, columns_of
from lance_duck.duck.statement.deterministic_sql import is_plain_table
from lance_duck.duck.statement.tokens import Token, tokens_of
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

FUNCTION: Final = "lance_vector_search"
PLACE: Final = "__lance_found"
"""What stands for the call in the text."""
_MAYBE: Final = re.compile(rf"\s*(select|from)\b[^;]*\b{FUNCTION}\s*\([^;]*", re.I)
_LONGEST: Final = 20_000
_NAMES: Final = ("table_name", "column_name", "query_vector", "k", "nprobes", "refine_factor", "ef", "metric")
_MORE: Final = ("prefilter", "filter", "use_index", "version", "tag", "asof")
_WORDS: Final = {"true": True, "false": False, "null": None}
_CAST: Final = re.compile(r"::(float|double)\[\]$", re.I)
_NUMBER: Final = re.compile(r"\d{1,18}")


@dataclass(frozen=True)
class Parameter:
    """What is given when the statement is run: by the place of its `?`, from 1, or by its name."""

    key: Key


@dataclass(frozen=True)
class VectorCall:
    """A statement that reads the rows which a search finds.

    Attributes:
        before, after: The text around the call.
        arguments: Names of arguments of `Binder.bind_nearest`, and what they are.
        columns: Names that the statement reads, in lower case; None: perhaps all.
        own: Parameters of the call alone.
        marks: How many `?` stand before it; None: the statement has none.
    """

    before: str
    after: str
    arguments: tuple[tuple[str, Any], ...]
    columns: frozenset[str] | None
    own: frozenset[Key]
    marks: int | None


def vector_call(text: str) -> VectorCall | None:
    """Return what a statement reads; None where it is no such statement; pure.

    Args:
        text: Without its long lists: see `Listed`.
    """
    return _known(text) if len(text) <= _LONGEST and _MAYBE.fullmatch(text) else None


@lru_cache(maxsize=256)
def _known(text: str) -> VectorCall | None:
    tokens = tokens_of(text)
    at = [i for i, token in enumerate(tokens) if token.word == FUNCTION]
    if len(at) != 1 or PLACE in text or len(tokens) < at[0] + 3 or tokens[at[0] - 1].text == ".":
        return None
    end = next((i for i in range(at[0] + 2, len(tokens)) if tokens[i].text == ")"), None)
    if tokens[at[0] + 1].text != "(" or end is None:
        return None
    before, after = text[: tokens[at[0]].start], text[tokens[end].end :]
    arguments = _arguments(text, tokens, at[0] + 2, end)
    try:
        trees = sqlglot.parse(f"{before}{PLACE}{after}", read="duckdb")
    except (SqlglotError, RecursionError):
        return None
    select = trees[0]
    if arguments is None or len(trees) != 1 or not isinstance(select, exp.Select) or not _is_plain(select):
        return None
    table = select.args["from_"].this
    own = frozenset(value.key for value in arguments.values() if isinstance(value, Parameter))
    if any(not str(key).isdigit() and re.search(rf"\${key}\b", before + after) for key in own):
        return None
    alias = table.alias_or_name.lower()
    marks = [token.start for token in tokens if token.text == "?"]
    counted = sum(mark < tokens[at[0]].start for mark in marks) if marks else None
    return VectorCall(before, after, tuple(arguments.items()), columns_of(select, alias), own, counted)


def _is_plain(select: exp.Select) -> bool:
    """Return whether it reads this table alone, once."""
    table: Any = None if select.args.get("from_") is None else select.args["from_"].this
    if not is_plain_table(table) or table.name != PLACE or any(select.args.get(n) for n in ("joins", "laterals")):
        return False
    return sum(1 for _ in select.find_all(exp.Select, exp.Table, exp.SetOperation)) == 2


def _arguments(text: str, tokens: list[Token], first: int, end: int) -> dict[str, Any] | None:
    """Return arguments by their names; None where one is neither a constant nor a parameter."""
    starts = [first - 1, *(i for i in range(first, end) if tokens[i].text == ","), end]
    marks = [token.start for token in tokens if token.text == "?"]
    found: dict[str, Any] = {}
    for number, (left, right) in enumerate(pairwise(starts)):
        part = text[tokens[left].end : tokens[right].start].strip()
        named = re.match(r"(\"?)(\w+)\1\s*(?::=|=>)\s*", part)
        if (named is None) != (number < 3):
            return None
        name = _NAMES[number] if named is None else named[2].lower()
        value = part if named is None else part[named.end() :]
        if name in found or name not in _NAMES + _MORE:
            return None
        mark = next((i for i, at in enumerate(marks, 1) if tokens[left].end <= at < tokens[right].start), None)
        constant = _constant(value, mark, is_vector=name == "query_vector")
        if constant is None:
            return None
        found[name] = constant[0]
    return found if {*_NAMES[:3]} <= {*found} else None


def _constant(text: str, mark: int | None, *, is_vector: bool) -> tuple[Any] | None:
    """Return the value that a text says, in a tuple; None where it is no constant and no parameter."""
    if is_vector:
        cast = _CAST.search(text)
        if cast is not None:
            text = text[: cast.start()].strip()
            if text.startswith(f"${LISTED}") and cast[1].lower() == "float" and not SPEAKS_SOURCE:
                return None  # DuckDB 1.x rounds decimal numbers in a way of its own
    if text == "?" and mark is not None:
        return (Parameter(mark),)
    if re.fullmatch(r"\$[a-z_]\w*", text, re.I):
        return (Parameter(text[1:]),)
    if is_vector or LISTED in text:
        return None
    if re.fullmatch(r"'(?:[^']|'')*'", text):
        return (text[1:-1].replace("''", "'"),)
    if _NUMBER.fullmatch(text):
        return (int(text),)
    return (_WORDS[text.lower()],) if text.lower() in _WORDS else None
