"""Searchable text columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_duck.arguments import did_you_mean, known_names
from lance_duck.arrow.types import is_list, is_text, storage_type
from lance_duck.errors import LanceDuckError, UnknownColumnError, UnsupportedError, WrongTypeError
from lance_duck.index.catalog import field_path
from lance_duck.scan.sql.spelling import find_name
from lance_duck.wire.below_lists import found_field, listed_field
from lance_duck.wire.column_path import quoted_name, split_path
from lance_duck.wire.schema import Field, Schema


@dataclass(frozen=True)
class TextColumn:
    """A text column.

    Attributes:
        path: Dotted path of the column. Names are quoted with backticks if necessary.
        type: Arrow type: strings, or lists of strings, which may be nested.
        is_json: Whether the texts are JSON.
        read: Path of the column that is read: this column, or the outermost list that contains it.
        below: Names of the struct fields on the path from the column that is read to the texts.
    """

    path: str
    type: pa.DataType
    is_json: bool
    read: str
    below: tuple[str, ...]


def text_column(schema: Schema, name: str) -> TextColumn:
    """Resolve a text column. Names may differ by case if only one column matches.

    Paths do not name list items: "ls.t" is field t of the structs in list ls.

    Raises:
        UnknownColumnError: The column does not exist.
        WrongTypeError: The column does not contain texts.
        UnsupportedError: The column contains JSON in lists.
    """
    field = _field(schema, name)
    path = None if field is None else field_path(schema, field.id)
    if field is None or path is None:
        raise UnknownColumnError(
            f"FTS field path {name!r} does not exist in the dataset schema",
            expected=known_names(schema.names),
            remedy=did_you_mean(name, schema.names),
        )
    listed = listed_field(schema, field)
    if field.is_json and listed.below:
        raise UnsupportedError("full-text search does not support JSON in lists", where=f"column {name!r}")
    if not (field.is_json or _has_texts(field)):
        raise WrongTypeError(
            f"FTS field {name!r} must contain strings or lists of strings", found=str(field.arrow_type)
        )
    type_ = listed.type if listed.below else field.arrow_type
    return TextColumn(path, type_, field.is_json, listed.path, listed.below)


def text_columns(schema: Schema) -> Sequence[str]:
    """Return the paths of the top-level text columns."""
    return [quoted_name(field.name) for field in schema.fields if not field.is_json and _has_texts(field)]


def is_text_column(schema: Schema, name: str) -> bool:
    """Return whether a name is that of a text column: see `text_column`."""
    try:
        text_column(schema, name)
    except LanceDuckError:
        return False
    return True


def frozen(analyzer: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...] | None:
    """Return the parameters of an analyser as a hashable key."""
    if analyzer is None:
        return None
    return tuple(sorted((name, tuple(value) if isinstance(value, list) else value) for name, value in analyzer.items()))


def _field(schema: Schema, name: str) -> Field | None:
    """Return the field at a path, or None if it does not exist."""
    whole = name if name in schema.names else find_name(name, schema.names)
    try:
        return (
            schema.by_path(quoted_name(whole))
            if whole is not None
            else found_field(schema.fields, split_path(name), _meant)
        )
    except LanceDuckError:
        return None


def _meant(fields: Sequence[Field], name: str) -> Field | None:
    spelled = find_name(name, [field.name for field in fields])
    return next((field for field in fields if field.name == spelled), None)


def _has_texts(field: Field) -> bool:
    if field.blob_version:
        return False
    type_ = storage_type(field.arrow_type)
    return is_text(type_) or (is_list(type_) and is_text(type_.value_type))
