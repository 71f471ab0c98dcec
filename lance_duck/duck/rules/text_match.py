"""Rows that match words: SELECTs of one table whose WHERE asks for `match` and for nothing that may hold instead. Pure.

    SELECT … FROM t WHERE __lance_match(["t"."body"], …, 'words', '') AND k > 3 ORDER BY __lance_score(…) DESC LIMIT 10

`match` and `score` have become functions of ours before: see `duck.full_text`. Such a SELECT gives the same where the
table holds only rows that match, also where it is a subquery, a common table expression or a part of a UNION; where the
score is the first key of ORDER BY, best first, and all other conditions are known, only those of the best.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.join_chain import conjuncts
from lance_duck.duck.rules.order_by_distance import (
    PARTS,
    REFUSED,
    DistanceParameter,
    Key,
    as_key,
    row_count,
    without_table,
)
from lance_duck.duck.statement.deterministic_sql import (
    Node,
    is_plain_condition,
    is_plain_table,
    names_a_column,
    sql_of,
)
from lance_duck.duck.statement.text import LONGEST, Statement
from lance_duck.duck.tables.text_functions import MATCHES, SCORES

_BESIDE: Final = ("joins", "laterals", "sample")
_ODD: Final = (exp.TableSample, exp.Pivot, exp.Command)
_OURS: Final = (MATCHES, SCORES)


@dataclass(frozen=True)
class MatchCall:
    """A `match` that every row has to fulfil.

    Attributes:
        start, end: Its place in the text.
        request: The text of its `TextRequest`.
        words: What is searched for; None where a parameter says it.
        key: That parameter.
        mark: How the text spells the parameter.
    """

    start: int
    end: int
    request: str
    words: str | None
    key: Key
    mark: str


@dataclass(frozen=True)
class Best:
    """The rows with the best scores, as many as are wanted.

    Attributes:
        limit, offset: Numbers, or parameters.
        where: The other conditions, with `?` for their parameters; None: there are none.
        where_keys: Those parameters.
        where_columns: Names of the columns in them.
    """

    limit: int | DistanceParameter
    offset: int | DistanceParameter
    where: str | None
    where_keys: tuple[Key, ...]
    where_columns: frozenset[str]


@dataclass(frozen=True)
class MatchSelect:
    """A table of which a SELECT wants rows that match.

    Attributes:
        start, end: Place of its name in the text.
        alias: By what the statement calls it, to be added where the text does not say so; None where it does.
        name: Parts of its name.
        calls: All of them have to hold.
        best: Only these rows are wanted; None: all that match.
    """

    start: int
    end: int
    alias: str | None
    name: tuple[str, ...]
    calls: tuple[MatchCall, ...]
    best: Best | None


def find(statement: Statement) -> tuple[MatchSelect, ...]:
    """Find the tables of a statement of which matching rows are asked."""
    if MATCHES not in statement.text or len(statement.text) > LONGEST or statement.opening is None:
        return ()
    tree = None if statement.opening.stores else statement.tree
    if tree is None or tree.find(*_ODD):
        return ()
    try:
        return tuple(_selects(tree, statement))
    except (RecursionError, LookupError, ValueError):
        return ()


def _selects(tree: Node, statement: Statement) -> Iterator[MatchSelect]:
    named = {cte.alias.lower() for with_ in tree.find_all(exp.With) for cte in with_.expressions}
    for select in tree.find_all(exp.Select):
        from_, where = select.args.get("from_"), select.args.get("where")
        if from_ is None or where is None or any(select.args.get(name) for name in _BESIDE) or names_a_column(select):
            continue
        table = from_.this
        if not is_plain_table(table) or table.args.get("joins") or table.name.lower() in named:
            continue
        alias = table.alias_or_name.lower()
        parts = list(conjuncts(where.this))
        asked = [part for part in parts if _is_asked(part, alias)]
        if not asked:
            continue
        start, end = statement.place(table)
        calls = tuple(_call(part, statement) for part in asked)
        others = [part for part in parts if part not in asked]
        best = _best(select, [_arguments(part) for part in asked], others, alias)
        shown = None if table.alias else table.name
        yield MatchSelect(start, end, shown, tuple(part.name for part in table.parts), calls, best)


def _is_asked(part: Node, alias: str) -> bool:
    """Return whether a condition is a `match` of a column of a table, with constants or parameters."""
    if not isinstance(part, exp.Anonymous) or part.name != MATCHES or len(part.expressions) != 4:
        return False
    texts, request, words, values = part.expressions
    column = texts.expressions[0] if isinstance(texts, exp.Array) and len(texts.expressions) == 1 else texts
    root = column.parts[0].name.lower() if isinstance(column, exp.Column | exp.Dot) else ""
    is_constant = isinstance(request, exp.Literal) and isinstance(values, exp.Literal) and not values.name
    return root == alias and is_constant and isinstance(_words(words), exp.Literal | exp.Placeholder)


def _words(node: Node) -> Node:
    """Return what stands in `(…)::VARCHAR`."""
    return node.this.unnest() if isinstance(node, exp.Cast) else node


def _call(part: Node, statement: Statement) -> MatchCall:
    """Return a condition with its place in the text.

    Raises:
        LookupError: The place cannot be told.
    """
    first = next(node.meta["start"] for node in part.expressions[0].walk() if "start" in node.meta)
    place, tokens = statement.edited.origin(first), statement.tokens
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


def _best(select: exp.Select, asked: list[str], others: list[Node], alias: str) -> Best | None:
    """Return the best rows that are wanted; None where all that match are, or others may be."""
    order = select.args.get("order")
    known = PARTS - {"kind"}
    if order is None or any(value and name not in known for name, value in select.args.items()):
        return None
    limit, offset = row_count(select.args.get("limit")), row_count(select.args.get("offset"))
    if not limit or offset is None or not _is_by_score(select, order.expressions[0], asked) or not _is_plain(select):
        return None
    shown = {each.alias.lower() for each in select.expressions if isinstance(each, exp.Alias)}
    bare = [without_table(part, alias, shown) for part in others]
    parts = [part for part in bare if part is not None and is_plain_condition(part, [""])]
    if len(parts) < len(others):
        return None
    text = " AND ".join(f"({sql_of(part)})" for part in parts)
    return Best(
        limit,
        offset,
        re.sub(r"\$\w+", "?", text) or None,
        tuple(map(as_key, re.findall(r"\$(\w+)", text))),
        frozenset(column.name for part in parts for column in part.find_all(exp.Column)),
    )


def _is_by_score(select: exp.Select, key: Node, asked: list[str]) -> bool:
    """Return whether a key of ORDER BY is the score of the matches, best first."""
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
    """Return whether each row of the result stems from one row of the table."""
    keys = [each.this for each in select.args["order"].expressions]
    nodes = (node for part in [*select.expressions, *keys] for node in part.walk())
    refused = (node for node in nodes if isinstance(node, REFUSED))
    return all(isinstance(node, exp.Anonymous) and node.name in _OURS for node in refused)
