"""Finds SELECTs that return the best matching rows of one table. Pure.

    SELECT … FROM t WHERE __lance_match(["t"."body"], …, 'words', '') AND k > 3 ORDER BY __lance_score(…) DESC LIMIT 10

`duck.full_text` has already replaced `match` and `score` with functions. The rule requires that the SELECT sorts by
score first, in descending order, and that all other conditions are known. The result is then the same if the table
contains only rows whose scores are at least as high as in the last result row. `full_text.asked_tables` handles other
statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.order_by_distance import PARTS, REFUSED, DistanceParameter, row_count
from lance_duck.duck.rules.table_read import Condition, Key, TablePlace, as_key
from lance_duck.duck.rules.table_select import TableSelect, table_selects
from lance_duck.duck.statement.deterministic_sql import Node, is_plain_condition, sql_of
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST
from lance_duck.duck.tables.text_functions import MATCHES, SCORES

_ODD: Final = (exp.TableSample, exp.Pivot, exp.Command)
_OURS: Final = (MATCHES, SCORES)
_is_known = partial(is_plain_condition, aliases=[""])


@dataclass(frozen=True)
class MatchCall:
    """A `match` condition that every row must satisfy.

    Attributes:
        start, end: Range in the text, in characters.
        request: The serialized `TextRequest`.
        words: The query string, or None for a parameter.
        key: Key of the parameter. 0 for a constant.
        mark: The parameter in the text. Empty for a constant.
    """

    start: int
    end: int
    request: str
    words: str | None
    key: Key
    mark: str


@dataclass(frozen=True)
class TopMatches:
    """The rows with the best scores, up to a limit.

    Attributes:
        limit, offset: A number or parameter each.
        condition: The other conditions, or None.
    """

    limit: int | DistanceParameter
    offset: int | DistanceParameter
    condition: Condition | None


@dataclass(frozen=True)
class MatchSelect:
    """A table whose best matching rows a SELECT returns.

    Attributes:
        table: The table in the text.
        calls: The `match` conditions, combined with AND.
        best: The row limit and the other conditions.
    """

    table: TablePlace
    calls: tuple[MatchCall, ...]
    best: TopMatches


def find(statement: Statement) -> tuple[MatchSelect, ...]:
    """Find the tables whose best matching rows a statement returns."""
    if MATCHES not in statement.text or len(statement.text) > LONGEST:
        return ()
    try:
        return tuple(_selects(statement))
    except (RecursionError, LookupError, ValueError):
        return ()


def _selects(statement: Statement) -> Iterator[MatchSelect]:
    for table in table_selects(statement, *_ODD):
        conditions = [part for part in table.conjuncts if _is_asked(part, table.alias)]
        best = _best(table, conditions) if conditions else None
        if best is not None:
            yield MatchSelect(table.place, tuple(_call(part, statement) for part in conditions), best)


def _is_asked(part: Node, alias: str) -> bool:
    """Return whether a condition is a `match` on a table column, with constants or parameters."""
    if not isinstance(part, exp.Anonymous) or part.name != MATCHES or len(part.expressions) != 4:
        return False
    texts, request, words, values = part.expressions
    column = texts.expressions[0] if isinstance(texts, exp.Array) and len(texts.expressions) == 1 else texts
    column = column.this if isinstance(column, exp.Cast) else column  # JSON cast to a string
    root = column.parts[0].name.lower() if isinstance(column, exp.Column | exp.Dot) else ""
    is_constant = isinstance(request, exp.Literal) and isinstance(values, exp.Literal) and not values.name
    return root == alias and is_constant and isinstance(_words(words), exp.Literal | exp.Placeholder)


def _words(node: Node) -> Node:
    """Return the operand of `(…)::VARCHAR`."""
    return node.this.unnest() if isinstance(node, exp.Cast) else node


def _call(part: Node, statement: Statement) -> MatchCall:
    """Return a condition with its range in the text.

    Raises:
        LookupError: Sqlglot does not report a position.
    """
    first = next(node.meta["start"] for node in part.expressions[0].walk() if "start" in node.meta)
    place, tokens = statement.for_sqlglot.origin(first), statement.tokens
    at = next(i for i, token in enumerate(tokens) if token.start == place)
    while tokens[at].text != MATCHES:
        at -= 1
    depth, end = 1, at + 1
    while depth:
        end += 1
        depth += {"(": 1, ")": -1}.get(tokens[end].text, 0)
    words = _words(part.expressions[2])
    is_text = isinstance(words, exp.Literal)
    return MatchCall(
        tokens[at].start,
        tokens[end].end,
        part.expressions[1].name,
        words.name if is_text else None,
        0 if is_text else as_key(str(words.this)),
        "" if is_text else f"${words.this}",
    )


def _arguments(call: Node) -> str:
    return ", ".join(map(sql_of, call.expressions))


def _best(table: TableSelect, asked: list[Node]) -> TopMatches | None:
    """Return the limit and conditions of a SELECT. Returns None if it may return rows other than the best matches."""
    select, known = table.select, PARTS - {"kind"}
    order = select.args.get("order")
    if order is None or any(value and name not in known for name, value in select.args.items()):
        return None
    limit, offset = row_count(select.args.get("limit")), row_count(select.args.get("offset"))
    calls = [_arguments(part) for part in asked]
    if not limit or offset is None or not _is_by_score(select, order.expressions[0], calls) or not _is_plain(select):
        return None
    others = [part for part in table.conjuncts if part not in asked]
    parts = table.conditions(others, _is_known)
    return TopMatches(limit, offset, Condition.of(parts)) if len(parts) == len(others) else None


def _is_by_score(select: exp.Select, key: Node, asked: list[str]) -> bool:
    """Return whether a sort key is the score of the matches, in descending order."""
    if not isinstance(key, exp.Ordered) or key.args.get("nulls_first") or key.args.get("with_fill"):
        return False
    node = key.this
    if isinstance(node, exp.Column) and not node.table:
        named = [each for each in select.expressions if each.alias.lower() == node.name.lower()]
        node = named[0].this if len(named) == 1 and isinstance(named[0], exp.Alias) else node
    node = node.unnest()
    scores = list(node.flatten()) if isinstance(node, exp.Add) else [node]
    are_scores = all(isinstance(each, exp.Anonymous) and each.name == SCORES for each in scores)
    return bool(key.args.get("desc")) and are_scores and [_arguments(each) for each in scores] == asked


def _is_plain(select: exp.Select) -> bool:
    """Return whether each result row comes from one table row."""
    keys = [each.this for each in select.args["order"].expressions]
    nodes = (node for part in [*select.expressions, *keys] for node in part.walk())
    refused = (node for node in nodes if isinstance(node, REFUSED))
    return all(isinstance(node, exp.Anonymous) and node.name in _OURS for node in refused)
