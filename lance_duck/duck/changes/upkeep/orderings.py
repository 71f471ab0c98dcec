"""ORDER BY of OPTIMIZE: columns with their directions.

column [ASC | DESC] [NULLS FIRST | NULLS LAST], …
"""

from __future__ import annotations

from lance_duck.dataset import LanceDataset
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.errors import InvalidInputError
from lance_duck.scan.options import ColumnOrdering
from lance_duck.verbs.indexes.rows import column_path
from lance_duck.wire.column_path import join_path


def orderings_after(body: Clauses, place: int) -> tuple[list[str] | None, int]:
    """Read an optional ORDER BY. Returns the text of each item, and the position after it."""
    if not body.says(place, "order", "by"):
        return None, place
    end = body.find("with", start=place)
    end = len(body) if end < 0 else end
    return [item.text.strip() for item in body.part(place + 2, end).split()] or [""], end


def ordering_of(dataset: LanceDataset, text: str) -> ColumnOrdering:
    """Return an item of ORDER BY.

    Raises:
        InvalidInputError: The item is not a column with a direction.
        UnknownColumnError: The column does not exist.
    """
    item = Clauses.of(text)
    column = TableName.at(item, 0)
    after = len(item) if column is None else column.after
    is_descending = item.word(after) == "desc"
    after += is_descending or item.word(after) == "asc"
    nulls_first = item.says(after, "nulls", "first")
    after += 2 * (nulls_first or item.says(after, "nulls", "last"))
    if column is None or column.path is not None or after < len(item):
        raise InvalidInputError(
            "not a column to sort by",
            where="ORDER BY",
            expected="column [ASC | DESC] [NULLS FIRST | NULLS LAST]",
            found=text,
        )
    path = column_path(dataset.handle.snapshot.schema, join_path(column.parts))
    return ColumnOrdering(path, not is_descending, nulls_first)
