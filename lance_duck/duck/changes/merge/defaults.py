"""Finds the columns of a MERGE that get their DEFAULT."""

from __future__ import annotations

from collections.abc import Sequence

from lance_duck.duck.changes.merge.join import insert_lists
from lance_duck.duck.changes.rows.defaults import defaults_of, is_default
from lance_duck.duck.changes.rows.update import reset_columns, set_items
from lance_duck.duck.changes.target import TargetTable
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.identifiers import folded


def merged_defaults(table: TargetTable, actions: Sequence[str], source: Sequence[str]) -> set[str]:
    """Return the columns with a DEFAULT that actions leave out or set to DEFAULT.

    Args:
        table: The table.
        actions: The text of each WHEN, with column lists.
        source: The columns of the source.
    """
    stored = defaults_of(table).keys()
    used: set[str] = set()
    for text in actions if stored else ():
        clauses = Clauses.of(text)
        action = clauses.part(clauses.find("then") + 1)
        if action.word(0) == "insert":
            given = _given(action, source)
            used |= {name for name in stored if folded(name) not in given}
        elif action.says(0, "update", "set"):
            used |= stored & reset_columns(table, set_items(action.part(2)))
    return used


def _given(action: Clauses, source: Sequence[str]) -> set[str]:
    """Return the columns, in lower case, that an INSERT sets to another value than DEFAULT."""
    lists = insert_lists(action)
    if lists is not None:
        return {folded(name) for name, part in zip(*lists, strict=False) if not is_default(part)}
    return set(map(folded, source)) if action.says(1, "by", "name") else set()
