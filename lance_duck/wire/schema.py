"""The schema of a table: fields with their ids, and the corresponding Arrow schema.

On disk, a schema is a depth-first list of `Field` messages. A child refers to its parent by id, -1 at the top:

    list, large_list, list.struct, large_list.struct    one child, the item
    fixed_size_list:struct:{n}                          one child, the item
    struct                                              one child for each member
    map                                                 one child "entries" (struct) with two children, key and value
    any other logical type                              no child: see `wire.logical`

An extension type is stored as the metadata keys ARROW:extension:name and ARROW:extension:metadata. `lance.json` becomes
`arrow.json` with string storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pyarrow as pa

import lance_duck.wire.blob_type  # noqa: F401  registers the type of blobs with Arrow
from lance_duck.arguments import unknown_column
from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.wire.column_path import split_path
from lance_duck.wire.logical import BLOB_V2, EXTENSION_METADATA, EXTENSION_NAME, arrow_from_logical
from lance_duck.wire.pb import file_pb2

BLOB_KEY = "lance-encoding:blob"
PACKED_KEY = "lance-encoding:packed"
JSON = "lance.json"
EMBEDDING_FUNCTIONS = "embedding_functions"
PRIMARY_KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY_POSITION = f"{PRIMARY_KEY}:position"
CLUSTERING_KEY_POSITION = "lance-schema:unenforced-clustering-key:position"

_MAX_DEPTH = 64
_LISTS = {"list": pa.list_, "list.struct": pa.list_, "large_list": pa.large_list, "large_list.struct": pa.large_list}
_FSL_STRUCT = "fixed_size_list:struct:"

BLOB_V1_SCAN = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
"""Type of a blob description in a scan: offset and size in the data file."""
BLOB_V2_SCAN = pa.struct(
    [
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("position", pa.uint64(), nullable=False),
        pa.field("size", pa.uint64(), nullable=False),
        pa.field("blob_id", pa.uint32(), nullable=False),
        pa.field("blob_uri", pa.string(), nullable=False),
    ]
)
"""Type of a `lance.blob.v2` description in a scan: file, offset and size. See `file.blobs.places`."""


@dataclass(frozen=True)
class Field:
    """A field of the table, at any depth.

    Attributes:
        id: Id of the field in data files, unique in the table, at least 0.
        parent_id: Id of the parent field, -1 at the top.
        logical_type: Name of the type on disk.
        metadata: Field metadata, including the two extension keys.
        children: Struct members, the list item, or the map entries.
        blob_bytes: Whether a scan returns the bytes of a blob instead of a description.
        dictionary: Values of the dictionary that all 0.1 files of the table share. None if the table does not store a
            dictionary yet, and in later file versions.
    """

    id: int
    name: str
    parent_id: int
    logical_type: str
    nullable: bool
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    children: tuple[Field, ...] = ()
    blob_bytes: bool = False
    dictionary: pa.Array | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.id, self.name, self.parent_id, self.logical_type, self.nullable, dict(self.metadata))
        return Field, (*parts, self.children, self.blob_bytes, self.dictionary)

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of the values: a registered extension type if the field declares one.

        Raises:
            UnsupportedError: The logical type is unknown.
        """
        return self._resolved.type

    @property
    def extension_name(self) -> str | None:
        """Arrow extension name that the field declares on disk."""
        return self.metadata.get(EXTENSION_NAME)

    @property
    def is_json(self) -> bool:
        """Whether the values are JSON, stored as JSONB."""
        return self.logical_type == "json" or self.extension_name == JSON

    @property
    def is_list(self) -> bool:
        """Whether the field is a list or large_list. Its only child is the item."""
        return self.logical_type in _LISTS

    @property
    def is_dictionary(self) -> bool:
        """Whether the values are dictionary indices."""
        return self.logical_type.startswith("dict:")

    @property
    def is_packed(self) -> bool:
        """Whether a struct is stored row by row, as one column."""
        keys = (PACKED_KEY, "packed")
        return self.logical_type == "struct" and any(self.metadata.get(key, "").lower() == "true" for key in keys)

    @property
    def blob_version(self) -> int:
        """Blob version: 1 for a binary column marked as blob, 2 for `lance.blob.v2`, 0 for other types."""
        if self.extension_name == BLOB_V2:
            return 2
        return int(self.logical_type != "struct" and self.metadata.get(BLOB_KEY, "").lower() == "true")

    def to_arrow(self, *, scan: bool = False) -> pa.Field:
        """Return the Arrow field, with its metadata.

        Args:
            scan: Whether to return the scan type, in which blobs are descriptions.
        """
        return self._scanned if scan else self._resolved

    @cached_property
    def storage_type(self) -> pa.DataType:
        """Arrow type of the values without extension types. JSON is text.

        Raises:
            UnsupportedError: The logical type is unknown.
        """
        return _storage_type(self, scan=False)

    def binary_json_type(self) -> pa.DataType | None:
        """Return the Arrow type in a scan that returns all JSON as binary. Returns None if the field lacks JSON."""
        if not any(field.is_json for field in self.walk()):
            return None
        return _scan_type(self)

    def with_blob_bytes(self) -> Field:
        """Return the field with all blobs, at any depth, read as bytes."""
        if self.blob_version:
            kind = "large_binary" if self.blob_version == 2 else self.logical_type
            return replace(self, logical_type=kind, children=(), blob_bytes=True)
        return replace(self, children=tuple(child.with_blob_bytes() for child in self.children))

    def pruned(self, paths: Sequence[tuple[str, ...]]) -> Field:
        """Return the field restricted to the struct fields at the given paths. The path () keeps the whole field."""
        if () in paths or self.logical_type != "struct" or self.is_packed or self.blob_version:
            return self
        below = {child.name: [path[1:] for path in paths if path[0] == child.name] for child in self.children}
        return replace(self, children=tuple(c.pruned(below[c.name]) for c in self.children if below[c.name]))

    def walk(self) -> Iterator[Field]:
        """Yield the field and all fields below it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @cached_property
    def _resolved(self) -> pa.Field:
        return _import(_storage_field(self, scan=False))

    @cached_property
    def _scanned(self) -> pa.Field:
        return _import(_storage_field(self, scan=True))


@dataclass(frozen=True)
class Schema:
    """Fields of one version of a table.

    Attributes:
        fields: The columns, in order.
        metadata: Schema metadata.
    """

    fields: tuple[Field, ...]
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema, (self.fields, dict(self.metadata))

    @cached_property
    def arrow(self) -> pa.Schema:
        """Arrow schema of the columns.

        Raises:
            UnsupportedError: A logical type is unknown.
        """
        return pa.schema([f.to_arrow() for f in self.fields], metadata=dict(self.metadata) or None)

    @cached_property
    def scan_arrow(self) -> pa.Schema:
        """Arrow schema of a scan: like `arrow`, with descriptions instead of blobs."""
        return pa.schema([f.to_arrow(scan=True) for f in self.fields], metadata=dict(self.metadata) or None)

    def with_blob_bytes(self) -> Schema:
        """Return the schema with all blobs, at any depth, read as bytes. Returns itself if there are no blobs."""
        if not any(f.blob_version for f in self.walk()):
            return self
        return Schema(tuple(f.with_blob_bytes() for f in self.fields), self.metadata)

    def to_pyarrow(self) -> pa.Schema:
        """Return the Arrow schema, `arrow`."""
        return self.arrow

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return [f.name for f in self.fields]

    def by_id(self, field_id: int) -> Field:
        """Return the field with this id, at any depth.

        Raises:
            InvalidInputError: The field does not exist.
        """
        try:
            return self._ids[field_id]
        except KeyError:
            raise InvalidInputError(f"no field with id {field_id}", where="schema") from None

    def by_path(self, path: str) -> Field:
        """Return the field at a dotted path, for example "a.b.c".

        A name that contains a dot is quoted in backticks, and backticks in the name are doubled. If a column has the
        whole path as its name, it takes precedence.

        Raises:
            InvalidInputError: The field does not exist.
        """
        if path in self._columns:
            return self._columns[path]
        fields, field = self.fields, None
        for name in split_path(path):
            field = next((f for f in fields if f.name == name), None)
            if field is None:
                raise unknown_column(path, self.names, "schema")
            fields = field.children
        assert field is not None
        return field

    def walk(self) -> Iterator[Field]:
        """Yield all fields at all depths, depth first."""
        for top in self.fields:
            yield from top.walk()

    @cached_property
    def _ids(self) -> dict[int, Field]:
        return {f.id: f for f in self.walk() if f.id >= 0}

    @cached_property
    def _columns(self) -> dict[str, Field]:
        return {f.name: f for f in reversed(self.fields)}


def schema_from_proto(fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes] | None = None) -> Schema:
    """Build a schema from the field messages of a manifest or a file descriptor.

    Logical types are only parsed when an Arrow type is requested. Columns of known types therefore remain readable if
    a type is unknown.

    Raises:
        CorruptError: A field precedes its parent, an id occurs twice, siblings have the same name, or a list or map has
            the wrong children.
        UnsupportedError: The schema is nested too deeply.
    """
    below: dict[int, list[file_pb2.Field]] = {-1: []}
    depth = {-1: 0}
    for proto in fields:
        if proto.parent_id not in below:
            raise CorruptError(
                "the parent field does not exist",
                where=f"schema field {proto.name!r}",
                found=f"parent id {proto.parent_id}",
            )
        below[proto.parent_id].append(proto)
        if proto.id < 0:
            continue
        if proto.id in below:
            raise CorruptError("duplicate field id", where=f"schema field {proto.name!r}", found=proto.id)
        below[proto.id] = []
        depth[proto.id] = depth[proto.parent_id] + 1
        if depth[proto.id] > _MAX_DEPTH:
            raise UnsupportedError(
                "the schema is nested too deeply",
                where=f"schema field {proto.name!r}",
                expected=f"at most {_MAX_DEPTH} levels",
            )
    for siblings in below.values():
        _check_names(siblings)
    return Schema(tuple(_field(p, below) for p in below[-1]), text_map(metadata or {}))


def _check_names(siblings: list[file_pb2.Field]) -> None:
    names: set[str] = set()
    for proto in siblings:
        if proto.name in names:
            raise CorruptError("duplicate field name", where="schema", found=repr(proto.name))
        names.add(proto.name)


def text_map(raw: Mapping[str, bytes]) -> Mapping[str, str]:
    """Return the metadata with string values, sorted by key. Bytes that are not UTF-8 become U+FFFD."""
    return MappingProxyType({key: raw[key].decode(errors="replace") for key in sorted(raw)})


def _field(proto: file_pb2.Field, below: Mapping[int, list[file_pb2.Field]]) -> Field:
    children = tuple(_field(child, below) for child in below[proto.id]) if proto.id >= 0 else ()
    expected = _expected_children(proto.logical_type)
    if expected is not None and len(children) != expected:
        raise CorruptError(
            "wrong number of children",
            where=f"schema field {proto.name!r} ({proto.logical_type})",
            expected=expected,
            found=len(children),
        )
    if proto.logical_type == "map" and len(children[0].children) != 2:
        raise CorruptError("the map does not have a key and a value", where=f"schema field {proto.name!r}")
    metadata = dict(proto.metadata)
    if proto.extension_name:
        metadata[EXTENSION_NAME] = proto.extension_name.encode()
    for key, value in _keys(proto).items():
        metadata.setdefault(key, value)
    return Field(
        proto.id, proto.name, proto.parent_id, proto.logical_type, proto.nullable, text_map(metadata), children
    )


def _keys(proto: file_pb2.Field) -> dict[str, bytes]:
    """Return the metadata that declares a field as part of the primary or clustering key, from its message."""
    keys: dict[str, bytes] = {}
    if proto.unenforced_primary_key and PRIMARY_KEY_POSITION not in proto.metadata:
        keys[PRIMARY_KEY] = b"true"
    if proto.unenforced_primary_key_position:
        keys[PRIMARY_KEY_POSITION] = b"%d" % proto.unenforced_primary_key_position
    if proto.unenforced_clustering_key_position:
        keys[CLUSTERING_KEY_POSITION] = b"%d" % proto.unenforced_clustering_key_position
    return keys


def _expected_children(logical_type: str) -> int | None:
    single = logical_type in _LISTS or logical_type == "map" or logical_type.startswith(_FSL_STRUCT)
    return 1 if single else None


def _storage_field(f: Field, *, scan: bool) -> pa.Field:
    """Return the Arrow field with storage types. Extension types remain in the metadata."""
    metadata = dict(f.metadata)
    storage = _storage_type(f, scan=scan)
    if f.is_json:
        metadata |= {EXTENSION_NAME: "arrow.json", EXTENSION_METADATA: ""}
    elif scan and f.blob_version == 2 and f.blob_bytes:
        metadata.pop(EXTENSION_NAME, None)
    elif scan and f.blob_version == 1 and not f.blob_bytes:
        storage = BLOB_V1_SCAN
    elif scan and f.blob_version == 2:
        storage = BLOB_V2_SCAN
        metadata = {BLOB_KEY: "true", PACKED_KEY: "true"}
    return pa.field(f.name, storage, f.nullable or pa.types.is_null(storage), metadata or None)


def _storage_type(f: Field, *, scan: bool) -> pa.DataType:
    kind = f.logical_type
    if f.is_json:
        return pa.string()
    children = [_storage_field(child, scan=scan) for child in f.children]
    if kind == "struct":
        return pa.struct(children)
    if kind in _LISTS:
        return _LISTS[kind](children[0])
    if kind == "map":
        key, value = (_storage_field(child, scan=scan) for child in f.children[0].children)
        return pa.map_(key.with_nullable(False), value)
    if kind.startswith(_FSL_STRUCT) and children:
        plain = arrow_from_logical(kind.replace(":struct:", ":null:"), f.name)
        return pa.list_(children[0], plain.list_size)
    return arrow_from_logical(kind, f.name)


def _scan_type(f: Field) -> pa.DataType:
    """Return the Arrow type of a field in a scan, with JSON as large_binary."""
    if f.is_json:
        return pa.large_binary()
    type_ = f.to_arrow(scan=True).type
    if not any(below.is_json for below in f.walk()) or isinstance(type_, pa.BaseExtensionType):
        return type_
    children = [_scan_type(child) for child in f.children]
    if f.logical_type == "struct":
        return pa.struct([type_.field(i).with_type(child) for i, child in enumerate(children)])
    if f.logical_type in _LISTS:
        return _LISTS[f.logical_type](type_.value_field.with_type(children[0]))
    if f.logical_type == "map":
        entries = children[0]
        return pa.map_(entries.field(0).type, type_.item_field.with_type(entries.field(1).type))
    return pa.list_(type_.value_field.with_type(children[0]), type_.list_size)


class _AsCapsule:
    """A wrapper that hides a pyarrow field. pyarrow then re-imports the field and resolves its extension types."""

    def __init__(self, field_: pa.Field) -> None:
        self._field = field_

    def __arrow_c_schema__(self) -> Any:
        return self._field.__arrow_c_schema__()


def _import(storage: pa.Field) -> pa.Field:
    """Turn extension metadata into registered extension types. Unregistered types remain metadata."""
    try:
        return pa.field(_AsCapsule(storage))
    except (pa.ArrowException, ValueError, TypeError, KeyError):
        return storage
