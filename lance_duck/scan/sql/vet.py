"""Checks that users' SQL text is a single expression, and determines the columns that it reads.

DuckDB's parser reads the text. Statements, subqueries, `*` and functions on several rows (aggregates, window functions,
UNNEST) are rejected. Columns by number (`#1`) are also rejected, because DuckDB receives only the columns that a text
names.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.arguments import unknown_column
from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator.errors import BATCH, unbalanced, words_about
from lance_duck.scan.evaluator.expressions import query, select_columns
from lance_duck.scan.evaluator.types import Parameters
from lance_duck.scan.predicate.tree import Opaque, Path
from lance_duck.scan.sql.spelling import QUOTED, find_name, spelled

_REFUSED: Final = {
    "SUBQUERY": "a subquery",
    "STAR": "*",
    "WINDOW": "a window function",
    "DEFAULT": "DEFAULT",
    "POSITIONAL_REFERENCE": "a column by its number instead of its name",
}
_CONDITIONS: Final = ("COMPARISON", "CONJUNCTION", "BETWEEN")
_TESTS: Final = ("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "COMPARE_IN", "COMPARE_NOT_IN")
"""Node types whose result is always BOOLEAN, like the result of nodes of the classes `_CONDITIONS`."""

_NULL_CHECKS: Final = ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL")
_NOW: Final = frozenset(("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"))
_PURE: Final = frozenset(
    ("FUNCTION", "COMPARISON", "CONJUNCTION", "OPERATOR", "CONSTANT", "COLUMN_REF", "BETWEEN", "CASE")
)
"""Deterministic node classes. A function is deterministic only if DuckDB marks it as consistent."""

_MOMENTS: Final = re.compile(r"now|today|tomorrow|yesterday|current_|local", re.IGNORECASE)
_SELECT: Final = "SELECT ("
_NOWHERE: Final = 2**64 - 1
_WIDE_SPACES: Final = re.compile(
    r"""'[^']*' | "[^"]*" | --[^\r\n]* | \$(\w*)\$.*?\$\1\$
        | (?P<space>[\u00a0\u2000-\u200d\u202f\u205f\u2060\u3000\ufeff])""",
    re.DOTALL | re.VERBOSE,
)
"""Multi-byte spaces outside quotes. DuckDB 1.5 replaces each of them by one byte before it counts positions."""

_SELECT_KEYS: Final = ("where_clause", "group_expressions", "group_sets", "having", "sample", "qualify", "modifiers")

SyntaxTree = Mapping[str, Any]
"""An expression's syntax tree in DuckDB's serialized form."""


@dataclass(frozen=True)
class SqlExpression:
    """A vetted expression.

    Attributes:
        text: The user's text, with names in double quotes if necessary.
        paths: Columns and struct fields that the expression reads.
        type: DuckDB's name of the expression's type.
        is_stable: Whether the expression always has the same value for the same row.
    """

    text: str
    paths: tuple[Path, ...]
    type: str
    is_stable: bool = False

    @property
    def sql(self) -> str:
        """The text as an operand that can safely be embedded in SQL."""
        return f"({self.text}\n)"


def parse_sql(text: str, schema: pa.Schema, what: str, parameters: Parameters = None) -> SqlExpression:
    """Check an SQL expression against the columns that it may read.

    Args:
        text: A single SQL expression in DuckDB's dialect. Names may also be quoted with backticks.
        schema: Columns by name. DuckDB ignores case.
        what: Description of the text, for error messages, such as "filter".
        parameters: Values that will be bound.

    Raises:
        InvalidInputError: The syntax is wrong, a column is unknown, the text is not an expression on a single row, or
            the parameters do not match.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"bad {what}", expected="an SQL string", found=type(text).__name__)
    text = spelled(text, schema.names)
    return bind_expression(text, syntax_tree(text, what), schema, what, parameters)


def bind_expression(
    text: str, tree: SyntaxTree, schema: pa.Schema, what: str, parameters: Parameters = None
) -> SqlExpression:
    """Bind an expression with a known syntax tree. See `parse_sql`."""
    paths = _resolve(tree, schema, what, text)
    columns = _empty_columns(paths, schema, what)
    with _reworded(what, text):
        # DuckDB rejects aggregates, window functions and UNNEST in WHERE.
        if tree["class"] in _CONDITIONS or tree["type"] in _TESTS:
            select_columns(f"1 FROM {BATCH} WHERE ({text}\n)", columns, parameters)
            type_ = "BOOLEAN"
        else:
            select_columns(f"1 FROM {BATCH} WHERE (({text}\n) IS NULL)", columns, parameters)
            type_ = select_columns(f"({text}\n) AS value FROM {BATCH}", columns, parameters)[0][1].strip('"')
    return SqlExpression(text, paths, type_, _is_stable(tree, text))


def operand_paths(
    text: str, tree: SyntaxTree, spans: Sequence[tuple[int, int]], schema: pa.Schema
) -> tuple[tuple[Path, ...], ...] | None:
    """Return the columns that each part of a condition reads. Parts are operands of AND, OR or NOT.

    Args:
        text: The condition.
        tree: Syntax tree of the condition.
        spans: Start and end offset of each part in the text.
        schema: Columns that the condition may read.

    Returns:
        The columns. None if a part is not an operand in the syntax tree, or reads a column that is missing.
    """
    operands = list(_operands(tree))
    positions = sorted((at, number) for number, operand in enumerate(operands) for at in _positions(operand))
    sizes = Counter(number for _, number in positions)
    reads = []
    for span in spans:
        ends = (len(_SELECT) + (at if text.isascii() else len(text[:at].encode())) for at in span)
        first, last = (bisect_left(positions, (end,)) for end in ends)
        inside = Counter(number for _, number in positions[first:last])
        number = next(iter(inside), -1)
        if len(inside) != 1 or inside[number] != sizes[number]:
            return None
        try:
            reads.append(_resolve(operands[number], schema, "filter", text))
        except InvalidInputError:
            return None
    return tuple(reads)


def can_bind(conditions: Sequence[Opaque], reads: Sequence[tuple[Path, ...]], schema: pa.Schema) -> bool:
    """Return whether DuckDB can bind conditions and their parameters.

    Args:
        conditions: The conditions.
        reads: Columns that each condition reads.
        schema: Columns of the table.
    """
    text = " AND ".join(condition.sql for condition in conditions)
    parameters = all_parameters([condition.parameters for condition in conditions])
    try:
        columns = _empty_columns([path for paths in reads for path in paths], schema, "filter")
        select_columns(f"1 FROM {BATCH} WHERE TRUE AND {text}", columns, parameters)
    except (duckdb.Error, InvalidInputError):
        return False
    return True


def all_parameters(each: Sequence[Parameters]) -> Parameters:
    """Combine the parameters of several texts in order, for a text that joins these texts."""
    bound = [parameters for parameters in each if parameters]
    if not bound:
        return None
    if isinstance(bound[0], Mapping):
        return {name: value for mapping in bound if isinstance(mapping, Mapping) for name, value in mapping.items()}
    return [value for values in bound for value in values]


def refuse_loose_ends(text: str, what: str) -> None:
    """Raise InvalidInputError if the text is empty, or its parentheses are unbalanced."""
    loose_end = unbalanced(QUOTED.sub(" ", text)) if text.strip() else "an empty string"
    if loose_end is not None:
        raise InvalidInputError(f"bad {what}", where=repr(text), expected="one SQL expression", found=loose_end)


def syntax_tree(text: str, what: str) -> SyntaxTree:
    """Return DuckDB's syntax tree of the only expression in the text.

    Raises:
        InvalidInputError: See `parse_sql`.
    """
    refuse_loose_ends(text, what)
    plain = _WIDE_SPACES.sub(lambda match: " " * len(match[0].encode()) if match["space"] else match[0], text)
    with _reworded(what, text):
        answer = json.loads(query("SELECT json_serialize_sql(?)", [f"{_SELECT}{plain}\n)"])[0][0])
    if answer.get("error"):
        at_end = int(answer.get("position") or 0) > len(f"{_SELECT}{text}".encode())
        message = words_about(str(answer.get("error_message")), text, at_end=at_end)
        raise InvalidInputError(f"bad {what}", where=repr(text), found=message)
    nodes = [statement["node"] for statement in answer["statements"]]
    node = nodes[0]
    single = len(nodes) == 1 and node["type"] == "SELECT_NODE" and len(node["select_list"]) == 1
    if not single or node["from_table"]["type"] != "EMPTY" or any(node.get(key) for key in _SELECT_KEYS):
        raise InvalidInputError(f"bad {what}", where=repr(text), expected="one SQL expression")
    tree: SyntaxTree = node["select_list"][0]
    for part in nodes_of(tree):
        if part["class"] in _REFUSED:
            raise InvalidInputError(
                f"bad {what}", where=repr(text), expected="an expression of one row", found=_REFUSED[part["class"]]
            )
        if part["type"] in _NULL_CHECKS and part["children"][0].get("function_name") == "regexp_match":
            raise InvalidInputError(
                f"bad {what}: regexp_match is true or false here", where=repr(text), remedy="leave out IS [NOT] NULL"
            )
    return tree


@contextmanager
def _reworded(what: str, text: str) -> Iterator[None]:
    """Convert DuckDB's errors about a text to InvalidInputError."""
    try:
        yield
    except duckdb.Error as error:
        raise InvalidInputError(f"bad {what}", where=repr(text), found=words_about(str(error), text)) from error


def _operands(tree: SyntaxTree) -> Iterator[SyntaxTree]:
    """Yield the operands of the ANDs, ORs and NOTs of a condition."""
    if tree["class"] == "CONJUNCTION" or tree["type"] == "OPERATOR_NOT":
        for child in tree["children"]:
            yield from _operands(child)
    else:
        yield tree


def _positions(tree: SyntaxTree) -> Iterator[int]:
    """Yield the byte positions of a tree's nodes in the statement. Some nodes do not have a position."""
    return (part["query_location"] for part in nodes_of(tree) if part["query_location"] != _NOWHERE)


def _empty_columns(paths: Iterable[Path], schema: pa.Schema, what: str) -> dict[str, pa.Array]:
    """Return columns without rows, so that DuckDB can bind names to them."""
    roots = {path[0] for path in paths}
    _refuse_twins(roots, what)
    return {name: pa.nulls(0, schema.field(name).type) for name in schema.names if name in roots}


def nodes_of(tree: Any) -> Iterator[SyntaxTree]:
    """Yield every node of the syntax tree."""
    pending = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if "class" in part:
                yield part
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)


def _resolve(tree: Any, schema: pa.Schema, what: str, text: str) -> tuple[Path, ...]:
    lambdas = {name for part in nodes_of(tree) if part["class"] == "LAMBDA" for name in lambda_names(part)}
    paths: dict[Path, None] = {}
    for part in nodes_of(tree):
        if part["class"] != "COLUMN_REF":
            continue
        names = part["column_names"]
        root = find_name(names[0], schema.names)
        if root is not None:
            paths[_descend(schema.field(root), names[1:])] = None
        elif names[0].lower() not in lambdas | _NOW:
            raise _no_column(names[0], schema, what, text)
    return tuple(sorted(paths))


def _is_stable(tree: Any, text: str) -> bool:
    """Return whether an expression contains only columns, constants, and functions that DuckDB marks as consistent.

    Because a comparison may cast strings to timestamps, strings such as 'today' are not constants.
    """
    if _MOMENTS.search(text):
        return False
    for part in nodes_of(tree):
        if part["class"] not in _PURE:
            return False
        if part["class"] == "FUNCTION" and part["function_name"].lower() not in _pure_functions():
            return False
    return True


@cache
def _pure_functions() -> frozenset[str]:
    """Return the names that refer only to deterministic scalar functions."""
    rows = query(
        "SELECT lower(function_name) FROM duckdb_functions() GROUP BY 1"
        " HAVING bool_and(function_type = 'scalar' AND coalesce(stability, '') = 'CONSISTENT')"
    )
    return frozenset(name for (name,) in rows)


def _descend(field: pa.Field, names: Sequence[str]) -> Path:
    """Return the path from a column through the struct fields with these names. DuckDB resolves names after them."""
    path: Path = (field.name,)
    type_ = field.type
    for name in names:
        if not pa.types.is_struct(type_):
            break
        child = find_name(name, [child.name for child in type_.fields])
        if child is None:
            break
        path, type_ = (*path, child), type_.field(child).type
    return path


def lambda_names(part: SyntaxTree) -> Iterator[str]:
    """Yield the names of a lambda's parameters, in lower case."""
    for key in ("lhs", "parameters", "params"):
        for node in nodes_of(part.get(key)):
            yield from (str(name).lower() for name in node.get("column_names", []))


def _refuse_twins(roots: set[str], what: str) -> None:
    names_by_case: dict[str, str] = {}
    for root in sorted(roots):
        twin = names_by_case.setdefault(root.lower(), root)
        if twin != root:
            raise InvalidInputError(f"bad {what}: columns {twin!r} and {root!r} differ only by case")


def _no_column(name: str, schema: pa.Schema, what: str, text: str) -> InvalidInputError:
    """Return the error for an unknown column. If the name is in double quotes, the user may have meant a string."""
    error = unknown_column(name, schema.names, repr(text), f"bad {what}: ")
    structs = [field for field in schema if pa.types.is_struct(field.type)]
    inside = [f"'{field.name}.{name}'" for field in structs if field.type.get_field_index(name) >= 0]
    if inside:
        error.remedy = f"did you mean {' or '.join(inside)}?"
    hint = None
    if name == "None":
        hint = "a missing value is written NULL, and found by IS NULL"
    elif f'"{name}"' in text or (what != "filter" and name == text.strip()):
        hint = "strings need single quotes"
    if hint:
        error.remedy = f"{hint}; {error.remedy}" if error.remedy else hint
    return error
