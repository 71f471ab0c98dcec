"""Columns and tables that LanceDB computes: computed columns and materialized views.

A computed column has field metadata `computed_column` = "true", `computed_column.expression` and
`computed_column.inputs`, a JSON list of names. A materialized view has schema metadata `mv.definition`, JSON with
its query. A refresh by LanceDB recomputes the values.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

from lance_duck.errors import InvalidInputError, warn_of_derived
from lance_duck.snapshot.snapshot import Snapshot
from lance_duck.wire.pb import table_pb2
from lance_duck.wire.schema import Schema

COMPUTED: Final = "computed_column"
_EXPRESSION: Final = f"{COMPUTED}.expression"
_INPUTS: Final = f"{COMPUTED}.inputs"
_VIEW: Final = "mv.definition"


def computed_columns(schema: Schema) -> dict[str, str]:
    """Return the expressions of computed columns, by name."""
    return {f.name: f.metadata.get(_EXPRESSION, "") for f in schema.fields if COMPUTED in f.metadata}


def view_query(metadata: Mapping[str, str]) -> str | None:
    """Return the query of a materialized view, or None for other tables.

    Args:
        metadata: Metadata of the table's schema.
    """
    text = metadata.get(_VIEW)
    if text is None:
        return None
    try:
        return str(json.loads(text)["query"])
    except (ValueError, KeyError, TypeError):
        return text


def warn_of_computed(snapshot: Snapshot, columns: Collection[str]) -> None:
    """Warn that a change writes values into computed columns.

    Args:
        snapshot: The version to be changed.
        columns: Names of the columns with new values.

    Raises:
        DerivedDataWarning: Warnings of this kind are errors.
    """
    for name, expression in computed_columns(snapshot.schema).items():
        if name in columns:
            warn_of_derived(
                f"{snapshot.uri}: LanceDB computes column {name!r} as {expression}. Its next refresh "
                "overwrites these values."
            )


def warn_of_view(snapshot: Snapshot, change: str) -> None:
    """Warn that an operation changes a materialized view.

    Args:
        snapshot: The version to be changed.
        change: Name of the operation.

    Raises:
        DerivedDataWarning: Warnings of this kind are errors.
    """
    query = view_query(snapshot.schema.metadata)
    if query is not None:
        warn_of_derived(
            f"{snapshot.uri}: {change} changes a materialized view of LanceDB ({query}). Its next "
            "refresh undoes the change."
        )


def check_definitions(before: table_pb2.Manifest, after: table_pb2.Manifest) -> None:
    """Reject a schema change that breaks the definition of a computed column.

    Raises:
        InvalidInputError: The change renames, drops or casts an input of a computed column that remains in the table,
            or casts the computed column itself.
    """
    computed = [field for field in before.fields if COMPUTED in field.metadata]
    if not computed:
        return
    old, new = _paths(before), _paths(after)
    left = {field.id for field in after.fields}
    for field in computed:
        if field.id not in left:
            if field.name in new:
                raise _breaks(f"column {field.name!r} is computed and cannot be cast", field.name)
            continue
        for name in _inputs(field.metadata[_INPUTS]):
            if name in old and old[name] != new.get(name):
                raise _breaks(f"column {name!r} is read by computed column {field.name!r}", field.name)


def _paths(manifest: table_pb2.Manifest) -> dict[str, int]:
    """Return the ids of fields by their dotted names."""
    names: dict[int, str] = {}
    for field in manifest.fields:
        above = names.get(field.parent_id)
        names[field.id] = field.name if above is None else f"{above}.{field.name}"
    return {name: field_id for field_id, name in names.items()}


def _inputs(text: bytes) -> list[str]:
    try:
        names = json.loads(text)
    except ValueError:
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _breaks(what: str, column: str) -> InvalidInputError:
    return InvalidInputError(what, remedy=f"drop column {column!r} first, and declare it again with LanceDB")
