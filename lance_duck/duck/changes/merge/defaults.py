"""Values of columns that an INSERT of a MERGE leaves out: DEFAULT, and vectors that embedders make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_duck import lazy
from lance_duck.duck.changes.merge.join import insert_lists
from lance_duck.duck.changes.rows.defaults import defaults_of, is_default
from lance_duck.duck.changes.rows.update import reset_columns, set_items
from lance_duck.duck.changes.target import TargetTable
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.identifiers import folded
from lance_duck.verbs.rows.edits import RowEdits
from lance_duck.wire.schema import EMBEDDING_FUNCTIONS

if TYPE_CHECKING:
    from lance_duck import embedders
else:
    embedders = lazy.modules(globals(), "lance_duck", "embedders")


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


def with_vectors(table: TargetTable, actions: Sequence[str], source: Sequence[str], edits: RowEdits) -> RowEdits:
    """Return edits whose new rows have vectors of embedders in columns that no INSERT sets.

    Args:
        table: The table, with all columns.
        actions: The text of each WHEN, with column lists.
        source: The columns of the source.
        edits: The edits.

    Raises:
        CorruptError, InvalidInputError: See `embedders.with_embeddings`.
    """
    schema = table.dataset.handle.snapshot.schema
    if edits.inserted is None or EMBEDDING_FUNCTIONS not in schema.metadata:
        return edits
    given = set(map(folded, defaults_of(table)))
    for text in actions:
        clauses = Clauses.of(text)
        action = clauses.part(clauses.find("then") + 1)
        given |= _given(action, source) if action.word(0) == "insert" else set()
    made = {each.vector_column for each in embedders.embedding_functions(schema.metadata)}
    rows = edits.inserted.select([c for c in edits.inserted.column_names if c not in made or folded(c) in given])
    return replace(edits, inserted=embedders.with_embeddings(rows.to_reader(), schema).read_all())


def _given(action: Clauses, source: Sequence[str]) -> set[str]:
    """Return the columns, in lower case, that an INSERT sets to another value than DEFAULT."""
    lists = insert_lists(action)
    if lists is not None:
        return {folded(name) for name, part in zip(*lists, strict=False) if not is_default(part)}
    return set(map(folded, source)) if action.says(1, "by", "name") else set()
