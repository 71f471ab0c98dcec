"""Recognizes deterministic SQL: parts of a statement that return the same rows if they run separately.

This module lists the constructs that are known to be deterministic. Parts with any other construct are not accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from sqlglot import exp

from lance_duck.duck.statement.placeholders import LISTED
from lance_duck.scan.sql.boxes import BOX_FUNCTIONS, GEOMETRY_FUNCTIONS

Node: TypeAlias = Any
"""A node of sqlglot's syntax tree."""

_LITERAL: Final = re.compile(r"\d{1,18}(\.\d{1,9})?")
_CONDITION: Final = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Paren, exp.Between, exp.Is),
    *(exp.In, exp.Like, exp.Null, exp.Boolean, exp.Literal, exp.Neg, exp.Placeholder, exp.Column, exp.Identifier),
    *(exp.Cast, exp.DataType, exp.Add, exp.Sub, exp.Mul, exp.Interval, exp.Var),
)
_TEXTS: Final = (
    *(exp.Contains, exp.ILike, exp.StartsWith, exp.EndsWith, exp.RegexpLike, exp.RegexpFullMatch),
    *(exp.SimilarTo, exp.Glob, exp.Escape, exp.Lower, exp.Upper, exp.Anonymous),
)
_NEW: Final = (exp.ArrayContainedBy,) if hasattr(exp, "ArrayContainedBy") else ()  # older sqlglot swaps the operands
_LISTS: Final = (exp.ArrayContains, exp.ArrayContainsAll, exp.ArrayOverlaps, *_NEW)
JSON: Final = (exp.JSONExtract, exp.JSONExtractScalar)
_POINTS: Final = (exp.StPoint,) if hasattr(exp, "StPoint") else ()
_FUNCTIONS: Final = (*_TEXTS, *_LISTS, *_POINTS, *JSON, exp.NullSafeEQ, exp.NullSafeNEQ)
_FIELDS: Final = (exp.Array, exp.Dot, exp.Bracket)
_TEXT_CALLS: Final = frozenset({"prefix", "suffix", "ends_with", "starts_with", "contains", "regexp_full_match"})
_BOX_CALLS: Final = BOX_FUNCTIONS | frozenset(GEOMETRY_FUNCTIONS)
_LIST_CALLS: Final = frozenset(
    f"{type_}_{name}" for type_ in ("list", "array") for name in ("contains", "has", "has_any", "has_all")
)
CONDITION_FUNCTIONS: Final = (
    *(*sorted(_TEXT_CALLS), "regexp_matches", "lower", "upper", "lcase", "ucase"),
    *("~~", "~~*", "~~~", "like_escape", "ilike_escape", "^@", "+", "-", "*"),
    *("->", "->>", *(f"json_extract{name}" for name in ("", "_path", "_string", "_path_text"))),
    *sorted(_BOX_CALLS),
    *(*sorted(_LIST_CALLS), "@>", "<@", "&&", "list_value", "struct_extract", "array_extract"),
)
"""DuckDB functions and operators of conditions, in addition to comparisons."""

_QUERY: Final = (
    *(exp.Select, exp.From, exp.Where, exp.Table, exp.TableAlias, exp.Alias, exp.Subquery, exp.Values, exp.Tuple),
    *(exp.Distinct, exp.Group, exp.Having, exp.Max, exp.Min, exp.Count, exp.Star, exp.Join, exp.Union, exp.Except),
    *(exp.Intersect, exp.Order, exp.Ordered),
)
_CASTS: Final = frozenset(
    {"TINYINT", "SMALLINT", "INT", "BIGINT", "UTINYINT", "USMALLINT", "UINT", "UBIGINT", "VARCHAR", "TEXT", "DATE"}
    | {"FLOAT", "DOUBLE", "TIMESTAMP", "BOOLEAN", "GEOMETRY"}
)
_JOINS: Final = frozenset({"", "INNER", "CROSS", "LEFT", "RIGHT", "SEMI", "ANTI", "OUTER"})


def is_plain_condition(node: Node, aliases: Iterable[str], *, lists: bool = False, functions: bool = False) -> bool:
    """Return whether an expression is deterministic and only reads columns of the given tables.

    Args:
        node: The expression.
        aliases: Table aliases, in lower case. Each column must be qualified.
        lists: Accept parameters that replace number lists. See `LiftedText`.
        functions: Accept functions of strings, lists, JSON and geometries, and struct fields. The caller must check
            that macros do not override `CONDITION_FUNCTIONS`.
    """
    known = set(aliases)
    kinds = (*_CONDITION, *_FUNCTIONS, *_FIELDS) if functions else _CONDITION
    for part in node.walk():
        if not isinstance(part, kinds) or not (_is_known(part) or (lists and _is_list(part))):
            return False
        if isinstance(part, exp.Column) and part.table.lower() not in known:
            return False
    return True


def calls_functions(node: Node) -> bool:
    """Return whether a condition tests strings, lists, JSON or geometries, or compares with IS DISTINCT FROM."""
    return node.find(exp.Like, *_FUNCTIONS) is not None or any(part.args.get("field") for part in node.find_all(exp.In))


def is_plain_query(node: Node) -> bool:
    """Return whether a query always returns the same rows while its tables are unchanged."""
    if not isinstance(node, exp.Select | exp.Union | exp.Except | exp.Intersect):
        return False
    return all(isinstance(part, _CONDITION + _QUERY) and _is_known(part) for part in node.walk())


def is_plain_values(node: Node) -> bool:
    """Return whether a node is a list of constants: `(VALUES …) AS v(a, b)`."""
    kinds = (exp.Values, exp.Tuple, exp.Literal, exp.Null, exp.Neg, exp.Placeholder, exp.TableAlias, exp.Identifier)
    return isinstance(node, exp.Values) and all(isinstance(p, kinds) and _is_known(p) for p in node.walk())


def is_plain_table(node: Node, *, joined: bool = False) -> bool:
    """Return whether a node is a named table without a sample, column aliases or other modifiers.

    Args:
        node: The node.
        joined: Accept a table that other tables are joined to. Sqlglot reads `FROM t, u` without SELECT like this.
    """
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return False
    joins = ("joins",) if joined else ()
    return _has_only(node, "this", "alias", "db", "catalog", *joins) and not node.alias_column_names


def names_a_column(node: Node) -> bool:
    """Return whether a node is inside an unaliased result column, which is named by its expression."""
    while node.parent is not None:
        parent = node.parent
        if isinstance(parent, exp.Select) and node.arg_key == "expressions" and not isinstance(node, exp.Alias):
            return True
        node = parent
    return False


def sql_of(node: Node) -> str:
    """Return the SQL of a node with all identifiers quoted."""
    return str(node.sql(dialect="duckdb", identify=True, comments=False))


def _is_known(part: Node) -> bool:
    """Return whether a node only has arguments that are known for its type."""
    match part:
        case exp.Literal():
            return bool(part.is_string) or _LITERAL.fullmatch(str(part.this)) is not None
        case exp.Column():
            return _has_only(part, "this", "table") and isinstance(part.this, exp.Identifier | exp.Star)
        case exp.Anonymous():
            return str(part.this).lower() in _TEXT_CALLS | _LIST_CALLS | _BOX_CALLS and _has_only(
                part, "this", "expressions"
            )
        case exp.ArrayContains() | exp.ArrayContainsAll() | exp.ArrayOverlaps():
            return _has_only(part, "this", "expression")
        case exp.JSONExtract() | exp.JSONExtractScalar():
            return bool(part.expression.is_string)
        case exp.Array():
            return _has_only(part, "expressions")
        case exp.Dot():
            return isinstance(part.expression, exp.Identifier)
        case exp.Bracket():
            keys = part.expressions
            return _has_only(part, "this", "expressions") and len(keys) == 1 and bool(keys[0].is_string)
        case exp.RegexpLike() | exp.RegexpFullMatch():
            return _has_only(part, "this", "expression", "flag", "options")
        case exp.Cast():
            return _has_only(part, "this", "to", "safe")
        case exp.DataType():
            return _has_only(part, "this") and part.this.name in _CASTS
        case exp.Table():
            return is_plain_table(part) and _has_only(part, "this", "alias")
        case exp.Select():
            return _has_only(part, "expressions", "from_", "where", "joins", "group", "having", "distinct", "order")
        case exp.Distinct():
            return _has_only(part)
        case exp.Group():
            return _has_only(part, "expressions")
        case exp.Join():
            return _has_only(part, "this", "on", "using", "side", "kind") and {part.side, part.kind} <= _JOINS
        case exp.Subquery():
            return _has_only(part, "this", "alias")
        case exp.In():
            return _has_only(part, "this", "expressions", "query", "field")
        case exp.Max() | exp.Min():
            return _has_only(part, "this")
        case exp.Count():
            return _has_only(part, "this", "big_int")
        case exp.Star():
            return _has_only(part)
        case exp.Union() | exp.Except() | exp.Intersect():
            return _has_only(part, "this", "expression", "distinct")
        case exp.Placeholder():
            return _has_only(part, "this") and bool(part.this) and not _is_list(part)
    return True


def _is_list(part: Node) -> bool:
    """Return whether a node is a parameter that replaces a number list."""
    return isinstance(part, exp.Placeholder) and str(part.this).startswith(LISTED)


def _has_only(part: Node, *names: str) -> bool:
    return all(name in names for name, value in part.args.items() if value)
