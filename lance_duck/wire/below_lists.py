"""Fields of structs in lists. Their paths omit list items: "ls.t" is field t of the structs in list ls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lance_duck.wire.column_path import join_path
from lance_duck.wire.schema import Field, Schema


@dataclass(frozen=True)
class ListedField:
    """A field that may be inside list items, and the column from which it is read.

    Attributes:
        path: Dotted path of the column to read: the field itself, or the outermost list that contains it.
        below: Names of the struct fields on the path from that column to the field.
        shown: Dotted path of the field for display, without list items.
        type: Storage type of the field's values, nested in one large_list for each list on the path.
    """

    path: str
    below: tuple[str, ...]
    shown: str
    type: pa.DataType


def listed_field(schema: Schema, field: Field) -> ListedField:
    """Return the `ListedField` of a field, which may be inside lists."""
    way = [field]
    while way[0].parent_id >= 0:
        way.insert(0, schema.by_id(way[0].parent_id))
    outer = next((place for place, each in enumerate(way[:-1]) if each.logical_type != "struct"), len(way) - 1)
    names = [each.name for place, each in enumerate(way) if not place or way[place - 1].logical_type == "struct"]
    below = [way[place].name for place in range(outer + 1, len(way)) if way[place - 1].logical_type == "struct"]
    type_ = field.storage_type
    for each in way[outer:-1]:
        type_ = type_ if each.logical_type == "struct" else pa.large_list(type_)
    return ListedField(join_path(each.name for each in way[: outer + 1]), tuple(below), join_path(names), type_)


def found_field(
    fields: Sequence[Field], names: Iterable[str], choose: Callable[[Sequence[Field], str], Field | None]
) -> Field | None:
    """Return the field at a path of names, or None if it does not exist. List items are optional in the path.

    Args:
        fields: Fields of the table.
        names: Names of the path, outermost first.
        choose: Returns the field with a given name among some fields, or None if no field matches.
    """
    field: Field | None = None
    for name in names:
        child = choose(fields, name)
        while child is None and field is not None and field.logical_type != "struct" and len(field.children) == 1:
            field = field.children[0]
            child = choose(field.children, name)
        if child is None:
            return None
        field, fields = child, child.children
    return field
