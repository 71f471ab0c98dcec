"""Converts Arrow schemas to table schemas and messages: the inverse of `wire.schema`.

Ids are assigned depth first. In addition to the message fields that `wire.schema` reads, the messages contain:

    encoding            1 fixed-width values, lists and maps · 2 strings, binary, JSON · 3 dictionary (with an empty
                        `dictionary` message) · 0 struct and null
    extension_name      copied from the metadata
    unenforced_*        primary and clustering key, copied from the metadata lance-schema:unenforced-…
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.wire.c_schema import metadata_pairs
from lance_duck.wire.files.dictionaries import check_values
from lance_duck.wire.fragment import LEGACY
from lance_duck.wire.logical import BLOB_V2, EXTENSION_METADATA, EXTENSION_NAME, logical_from_arrow
from lance_duck.wire.pb import file_pb2
from lance_duck.wire.schema import (
    BLOB_KEY,
    CLUSTERING_KEY_POSITION,
    JSON,
    PRIMARY_KEY,
    PRIMARY_KEY_POSITION,
    Field,
    Schema,
)

_JSON_NAMES = (JSON, "arrow.json")
_TRUE = ("true", "1", "yes")
_TEXTS = ("string", "large_string", "binary", "large_binary", "json")
_NOT_LEGACY = ("fixed_size_binary:0",)
_MAX_DEPTH = 64
_FSL_STRUCT = "fixed_size_list:struct:"
_DUCKDB_ITEMS = ("l", "")
"""Item names of lists and arrays exported by DuckDB. pylance only appends lists whose item is named "item"."""


def schema_from_arrow(
    arrow: pa.Schema,
    version: str = "2.2",
    first_id: int = 0,
    existing: Schema | None = None,
    *,
    old_blobs: bool = False,
    keep: Callable[[str], bool] | None = None,
) -> Schema:
    """Build the table schema for the columns of an Arrow schema.

    Views become plain strings, binary and lists. List items with DuckDB's names are renamed to "item". All JSON types
    become `lance.json`. In 2.2, a binary column with metadata lance-encoding:blob = "true" becomes a `lance.blob.v2`.

    Args:
        arrow: The columns.
        version: Version of the data files that will store the columns: "0.1", "2.0", "2.1" or "2.2".
        first_id: Lowest id that may be assigned.
        existing: An existing schema. Fields of `arrow` with the same names keep the ids from this schema. Other fields
            get ids above its ids.
        old_blobs: Whether binary blob columns remain unchanged in 2.2, like in files without a table.
        keep: Returns whether to keep field metadata with a given key. None keeps all metadata. The metadata of
            extension types is always kept.

    Raises:
        UnsupportedError: Lance or this file version does not support a type. The message contains the column and the
            type.
        InvalidInputError: A name is repeated, a column name contains a dot, or a column cannot be part of a key.
    """
    above = max((f.id + 1 for f in existing.walk()), default=0) if existing is not None else 0
    builder = _FieldBuilder(version, max(first_id, above), old_blobs, keep)
    existing_fields = existing.fields if existing is not None else ()
    for name in arrow.names:
        if "." in name:
            raise InvalidInputError(
                "a column name cannot contain a dot",
                where=repr(name),
                remedy="rename the column, or nest it in a struct",
            )
    fields = tuple(builder.fields(list(arrow), -1, existing_fields, ()))
    for top in fields:
        _check_keys(top, nullable=False)
    return Schema(fields, _text(arrow.metadata))


def schema_to_proto(schema: Schema) -> list[file_pb2.Field]:
    """Return the messages of all fields for a manifest or a file descriptor, depth first."""
    return [field_to_proto(f) for f in schema.walk()]


def metadata_to_proto(metadata: Mapping[str, str]) -> dict[str, bytes]:
    """Return the metadata of a schema or a field in the form that messages store."""
    return {key: metadata[key].encode() for key in sorted(metadata)}


def field_to_proto(f: Field) -> file_pb2.Field:
    """Return the message of a field, without its children."""
    proto = file_pb2.Field(
        name=f.name, id=f.id, parent_id=f.parent_id, logical_type=f.logical_type, nullable=f.nullable
    )
    proto.encoding = _encoding(f.logical_type)
    if proto.encoding == file_pb2.DICTIONARY:
        proto.dictionary.SetInParent()
    proto.extension_name = f.extension_name or ""
    for key, value in metadata_to_proto(f.metadata).items():
        proto.metadata[key] = value
    position, clustering = _position(f, PRIMARY_KEY_POSITION), _position(f, CLUSTERING_KEY_POSITION)
    proto.unenforced_primary_key = is_primary_key(f)
    proto.unenforced_primary_key_position = position or 0
    proto.unenforced_clustering_key_position = clustering or 0
    return proto


def is_primary_key(f: Field) -> bool:
    """Return whether a field is declared to be part of the unenforced primary key."""
    return f.metadata.get(PRIMARY_KEY, "").lower() in _TRUE or _position(f, PRIMARY_KEY_POSITION) is not None


def primary_key(schema: Schema) -> tuple[Field, ...]:
    """Return the fields of the unenforced primary key, ordered by position, then by id for fields without one."""
    fields = [f for f in schema.walk() if is_primary_key(f)]
    return tuple(sorted(fields, key=lambda f: (not _position(f, PRIMARY_KEY_POSITION), _place(f), f.id)))


def clustering_key(schema: Schema) -> tuple[Field, ...]:
    """Return the fields of the unenforced clustering key in order of position."""
    fields = [(key_position(f, clustering=True), f) for f in schema.walk()]
    return tuple(f for _, f in sorted(((p, f) for p, f in fields if p is not None), key=lambda pair: pair[0]))


def key_position(f: Field, *, clustering: bool) -> int | None:
    """Return the position of a field in the clustering key or the primary key, or None for other fields."""
    return _position(f, CLUSTERING_KEY_POSITION if clustering else PRIMARY_KEY_POSITION)


class _FieldBuilder:
    """A builder of fields. It assigns ids depth first."""

    def __init__(self, version: str, first_id: int, old_blobs: bool, keep: Callable[[str], bool] | None) -> None:
        self._version = version
        self._new_blobs = version >= "2.2" and not old_blobs
        self._next = first_id
        self._keep = keep

    def fields(
        self, arrow: Iterable[pa.Field], parent: int, existing: Iterable[Field], path: tuple[str, ...]
    ) -> Iterator[Field]:
        names: set[str] = set()
        old = {f.name: f for f in existing}
        for child in arrow:
            if child.name in names:
                raise InvalidInputError(
                    "two fields have the same name", where=f"column {'.'.join((*path, child.name))!r}"
                )
            names.add(child.name)
            yield self.field(child, parent, old.get(child.name), (*path, child.name))

    def field(self, arrow: pa.Field, parent: int, old: Field | None, path: tuple[str, ...]) -> Field:
        where = f"column {'.'.join(path)!r}"
        if len(path) > _MAX_DEPTH:
            raise UnsupportedError(
                "the schema is nested too deeply", where=where, expected=f"at most {_MAX_DEPTH} levels"
            )
        storage, metadata = self._storage(arrow, where)
        field_id = self._id(old)
        if metadata.get(EXTENSION_NAME) in _JSON_NAMES:
            metadata |= {EXTENSION_NAME: JSON, EXTENSION_METADATA: metadata.get(EXTENSION_METADATA, "")}
            logical = "json"
        else:
            logical = logical_from_arrow(storage, where)
        below = _children(storage, logical, old, where)
        children = tuple(self.fields(below, field_id, old.children if old else (), path))
        _check_version(logical, storage, self._version, where)
        return Field(field_id, arrow.name, parent, logical, arrow.nullable, _frozen(metadata), children)

    def _id(self, old: Field | None) -> int:
        if old is not None:
            return old.id
        self._next += 1
        return self._next - 1

    def _storage(self, arrow: pa.Field, where: str) -> tuple[pa.DataType, dict[str, str]]:
        """Return a field's storage type and metadata. Extension types become metadata, and blobs get their 2.2 type."""
        metadata = dict(_text(arrow.metadata))
        if self._keep is not None:
            metadata = {k: v for k, v in metadata.items() if k in (EXTENSION_NAME, EXTENSION_METADATA) or self._keep(k)}
        storage = arrow.type
        while isinstance(storage, pa.BaseExtensionType):
            metadata |= dict(metadata_pairs(storage))
            storage = storage.storage_type
        is_v2 = metadata.get(EXTENSION_NAME) == BLOB_V2
        if is_v2 and self._version < "2.2":
            raise UnsupportedError(
                f"data files of version {self._version} cannot store {BLOB_V2}",
                where=where,
                remedy="write with data_storage_version='2.2'",
            )
        if metadata.get(BLOB_KEY, "").lower() == "true" and self._version == LEGACY:
            raise UnsupportedError(
                "data files of version 0.1 cannot store blobs",
                where=where,
                remedy="write with data_storage_version='2.2'",
            )
        is_bytes = pa.types.is_binary(storage) or pa.types.is_large_binary(storage) or pa.types.is_binary_view(storage)
        if is_bytes and metadata.get(BLOB_KEY, "").lower() == "true" and self._new_blobs:
            del metadata[BLOB_KEY]
            metadata[EXTENSION_NAME] = BLOB_V2
            storage = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
        return storage, metadata


def _children(storage: pa.DataType, logical: str, old: Field | None, where: str) -> list[pa.Field]:
    if logical == "map":
        if storage.keys_sorted:
            raise UnsupportedError(
                "maps with sorted keys are not supported", where=where, remedy="cast the column to a plain map"
            )
        entries = pa.struct([storage.key_field, storage.item_field])
        return [pa.field("entries", entries, nullable=False)]
    if logical == "struct":
        return [storage.field(i) for i in range(storage.num_fields)]
    if _has_item(logical):
        item = storage.value_field
        if old is not None and len(old.children) == 1:
            return [item.with_name(old.children[0].name)]
        return [item.with_name("item") if item.name in _DUCKDB_ITEMS else item]
    return []


def _has_item(logical: str) -> bool:
    """Return whether a logical type is a list with an item field."""
    return logical in ("list", "large_list", "list.struct", "large_list.struct") or logical.startswith(_FSL_STRUCT)


def with_item_names(schema: Schema) -> Schema:
    """Return the schema, with list items that have DuckDB's names renamed to "item". All field ids stay."""

    def renamed(field: Field, name: str) -> Field:
        has_item = _has_item(field.logical_type)
        children = (
            renamed(child, "item" if has_item and child.name in _DUCKDB_ITEMS else child.name)
            for child in field.children
        )
        return replace(field, name=name, children=tuple(children))

    return replace(schema, fields=tuple(renamed(field, field.name) for field in schema.fields))


def refuse_mixed_lists(f: Field, path: tuple[str, ...] = (), *, lists: bool = False, fixed: bool = False) -> None:
    """Reject a column that combines lists and fixed-size lists of structs, because no reader supports its pages.

    Schemas may contain these columns, and pylance creates empty tables with them.

    Fixed-size lists with a single struct are allowed: this package reads them, unlike pylance.

    Args:
        f: The column, or a field of it.
        path: Names of the field's ancestors.
        lists: Whether the field is inside lists or maps.
        fixed: Whether the field is inside fixed-size lists of structs.

    Raises:
        UnsupportedError: The column combines both kinds of lists.
    """
    path = (*path, f.name)
    lists = lists or f.is_list or f.logical_type == "map"
    fixed = fixed or (f.logical_type.startswith(_FSL_STRUCT) and f.logical_type != f"{_FSL_STRUCT}1")
    if lists and fixed:
        raise UnsupportedError(
            "one column cannot nest both lists and fixed-size lists of structs",
            where=f"column {'.'.join(path)!r}",
            remedy="cast the fixed-size lists to lists",
        )
    for child in f.children:
        refuse_mixed_lists(child, path, lists=lists, fixed=fixed)


def _check_version(logical: str, storage: pa.DataType, version: str, where: str) -> None:
    needs = LEGACY
    if logical == "map" or logical.startswith(_FSL_STRUCT):
        needs = "2.2"
    elif logical in _NOT_LEGACY or (logical == "struct" and not storage.num_fields):
        needs = "2.0"
    if logical.startswith("dict:") and version == LEGACY:
        check_values(storage.value_type, where)
    if version < needs:
        raise UnsupportedError(
            f"data files of version {version} cannot store type {storage}",
            where=where,
            remedy=f"write with data_storage_version='{needs}'",
        )


def _check_keys(f: Field, *, nullable: bool) -> None:
    nullable = nullable or f.nullable
    if is_primary_key(f) and (nullable or f.children):
        raise InvalidInputError(
            "the column cannot be a primary key", where=repr(f.name), expected="a non-nullable, top-level column"
        )
    for child in f.children:
        _check_keys(child, nullable=nullable)


def _encoding(logical: str) -> file_pb2.Encoding:
    if logical in _TEXTS:
        return file_pb2.VAR_BINARY
    if logical.startswith("dict:"):
        return file_pb2.DICTIONARY
    return file_pb2.NONE if logical in ("struct", "null") else file_pb2.PLAIN


def _position(f: Field, key: str) -> int | None:
    text = f.metadata.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) < 1 << 32 else None


def _place(f: Field) -> int:
    return _position(f, PRIMARY_KEY_POSITION) or 0


def _text(metadata: Mapping[bytes, bytes] | None) -> Mapping[str, str]:
    """Return Arrow metadata as strings."""
    if not metadata:
        return MappingProxyType({})
    return _frozen({key.decode(errors="replace"): value.decode(errors="replace") for key, value in metadata.items()})


def _frozen(metadata: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({key: metadata[key] for key in sorted(metadata)})
