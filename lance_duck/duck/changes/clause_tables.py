"""Finds the tables that a clause reads, and chooses aliases for their replacements."""

from __future__ import annotations

from typing import Final

from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.common_tables import common_tables, parentheses
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.scope import Scopes

_CLAUSES: Final = (
    "where group order limit offset fetch join inner left right full outer cross natural semi anti asof positional on "
    "using having window qualify union except intersect select tablesample at pivot unpivot returning when set"
)
AFTER_TABLE: Final = frozenset(_CLAUSES.split())
"""Keywords that may follow a table, and therefore are not its alias."""
_TABLE_FOLLOWS: Final = frozenset({"from", "join", "using", "into", "table"})
_WITHOUT_ALIAS: Final = frozenset({"describe", "desc", "show", "summarize", "table", "copy"})
_READS: Final = _WITHOUT_ALIAS | {"pivot", "unpivot"}
_LIST_BEGINS: Final = frozenset({"select", "values", "set", "where", "on", "by", "having", "returning", "qualify"})


def alias_of(part: Clauses, mention: TableName, name: str) -> str:
    """Return an alias for a replaced table. Empty if the table already has an alias or cannot have one."""
    if part.word(mention.first - 1) in _WITHOUT_ALIAS:
        return ""
    after = mention.after
    is_named = after < len(part) and part.tokens[after].name is not None and part.word(after) not in AFTER_TABLE
    return "" if is_named else f" AS {quoted(name)}"


def reads_table(part: Clauses, place: int) -> bool:
    """Return whether a string constant is read as a table."""
    before = part.text_at(place - 1).lower()
    if before == "(":
        return reads_table(part, place - 1)
    if before != ",":
        return before in _TABLE_FOLLOWS and not part.says(place - 2, "distinct")
    depth = part.depths[place]
    for at in range(place - 2, -1, -1):
        word = part.word(at)
        if part.depths[at] < depth or word in _LIST_BEGINS:
            return False
        if part.depths[at] == depth and word in _TABLE_FOLLOWS:
            return True
    return True


def unqualified_names(part: Clauses) -> set[str]:
    """Return the unqualified names that may refer to tables, in lower case."""
    return {
        folded(token.name)
        for place, token in enumerate(part.tokens)
        if token.name is not None and part.text_at(place - 1) != "." and part.text_at(place + 1) != "."
    }


def unqualified_reads(part: Clauses) -> set[int]:
    """Return the tokens of unqualified names that are read as tables, not as common table expressions."""
    scopes = Scopes(part.tokens)
    return {
        place
        for place, token in enumerate(part.tokens)
        if token.name is not None
        and not part.says(place - 2, "using", "(")
        and (part.word(place - 1) in _READS or reads_table(part, place))
        and scopes.cte(token.name, place) is None
    }


def declares(part: Clauses, name: str) -> bool:
    """Return whether a clause contains a common table expression with a name."""
    closers, openers = parentheses(part.tokens)
    return any(each.name == folded(name) for each in common_tables(part.tokens, closers, openers))
