"""Columns of texts: what can be searched, through which index, by which analyser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lance_duck.arguments import did_you_mean, known_names
from lance_duck.arrow.types import is_list, is_text, storage_type
from lance_duck.errors import LanceDuckError, UnknownColumnError, UnsupportedError, WrongTypeError
from lance_duck.index.catalog import field_path
from lance_duck.scan.sql.names import find_name
from lance_duck.wire.column_path import quoted_name, split_path
from lance_duck.wire.schema import Field, Schema

_BELOW_LIST: Final = "full-text search of texts of structs in a list"


@dataclass(frozen=True)
class TextColumn:
    """A column of texts.

    Attributes:
        path: Its dotted path, names in backticks where they need them.
        type: Arrow type: a text, or a list of texts.
    """

    path: str
    type: pa.DataType


def text_column(schema: Schema, name: str) -> TextColumn:
    """Resolve a column of texts, whose names may be in another case where only one fits.

    Raises:
        UnknownColumnError: There is no such column.
        WrongTypeError: It holds no texts.
        UnsupportedError: It holds texts that are not searched.
    """
    try:
        field = schema.by_path(_spelled(schema, name))
        path = field_path(schema, field.id)
    except LanceDuckError as error:
        if _is_below_list(schema, name):
            raise UnsupportedError(
                "full-text search of texts of structs in a list", where=f"column {name!r}"
            ) from error
        raise UnknownColumnError(
            f"FTS field path {name!r} does not exist in the dataset schema",
            expected=known_names(schema.names),
            remedy=did_you_mean(name, schema.names),
        ) from error
    if field.is_json:
        raise UnsupportedError("full-text search of JSON", where=f"column {name!r}")
    if _lies_in_list(schema, field):
        raise UnsupportedError(_BELOW_LIST, where=f"column {name!r}")
    if path is None or not _has_texts(field):
        raise WrongTypeError(f"FTS field {name!r} must hold texts or lists of texts", found=str(field.arrow_type))
    return TextColumn(path, field.arrow_type)


def text_columns(schema: Schema) -> Sequence[str]:
    """Return the paths of the columns of texts at the top level."""
    return [quoted_name(field.name) for field in schema.fields if not field.is_json and _has_texts(field)]


def frozen(analyzer: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...] | None:
    """Return parameters of an analyser in a form that can be a key."""
    if analyzer is None:
        return None
    return tuple(sorted((name, tuple(value) if isinstance(value, list) else value) for name, value in analyzer.items()))


def _spelled(schema: Schema, name: str) -> str:
    """Return a path with names as the schema spells them, or as it is where there are none."""
    if name in schema.names:
        return quoted_name(name)
    whole = find_name(name, schema.names)
    if whole is not None:
        return quoted_name(whole)
    names, fields = [], schema.fields
    for each in split_path(name):
        spelled = find_name(each, [field.name for field in fields])
        if spelled is None:
            return name
        names.append(quoted_name(spelled))
        fields = next(field for field in fields if field.name == spelled).children
    return ".".join(names)


def _has_texts(field: Field) -> bool:
    if field.blob_version:
        return False
    type_ = storage_type(field.arrow_type)
    return is_text(type_) or (is_list(type_) and is_text(type_.value_type))


def _is_below_list(schema: Schema, name: str) -> bool:
    """Return whether a path, which leaves out the items of lists as paths of pylance do, leads into a list."""
    try:
        names = split_path(name)
    except LanceDuckError:
        return False
    fields, lists = schema.fields, 0
    for each in names:
        field = next((field for field in fields if field.name == each), None)
        if field is None:
            return False
        while field.children and field.logical_type != "struct":
            field, lists = field.children[0], lists + 1
        fields = field.children
    return lists > 0


def _lies_in_list(schema: Schema, field: Field) -> bool:
    parent = field.parent_id
    while parent >= 0:
        above = schema.by_id(parent)
        if above.logical_type != "struct":
            return True
        parent = above.parent_id
    return False
