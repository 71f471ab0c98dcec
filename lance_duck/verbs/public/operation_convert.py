"""Conversion between pylance's operations and the operations that are committed.

Both have the same names and fields, except as noted in this module. In pylance's classes, None means
the operation's default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import UTC
from functools import partial
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_duck import commit as op
from lance_duck.commit.operations import KeyExistenceFilter, Parts, converted, field_types
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.rows import fragments_in_bitmap, roaring_bytes
from lance_duck.verbs.public.bases import DatasetBasePath, shown_base
from lance_duck.verbs.public.fragment_metadata import (
    FragmentMetadata,
    data_file_from,
    data_file_of,
    fragment_from,
    metadata_of,
    overlay_from,
    overlay_of,
)
from lance_duck.verbs.public.lance_operation import Index, IndexFile, LanceOperation, Transaction
from lance_duck.verbs.public.lance_schema import LanceSchema, known_schema
from lance_duck.wire import transaction as wire
from lance_duck.wire.files.overlay import Overlay
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.wire.index import IndexMetadata, index_from_proto
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.pb import table_pb2
from lance_duck.wire.schema import Schema
from lance_duck.wire.schema_write import schema_from_arrow

_OPERATIONS: Final = {getattr(LanceOperation, form.__name__): form for form in op.Operation.__subclasses__()}
"""Maps each class of pylance operations to the class that is committed."""


def to_operation(operation: Any, schema: Schema | None) -> op.Operation:
    """Convert a user's operation to one that can be committed.

    Args:
        operation: A `LanceOperation`.
        schema: Schema of the version that it is based on, or None for a new table.

    Raises:
        InvalidInputError: The object is not an operation, or is invalid.
        UnsupportedError: The operation is of a newer format.
    """
    name = type(operation).__name__
    if type(operation) is LanceOperation.BaseOperation:
        raise UnsupportedError("this version cannot commit the operation, because its format is newer")
    if type(operation) not in _OPERATIONS:
        raise InvalidInputError("not an operation", expected="one of LanceOperation", found=name)
    try:
        taken: op.Operation = _taken(_OPERATIONS[type(operation)], operation)
        if isinstance(taken, op.Overwrite):
            return replace(taken, new_schema=_schema(taken.new_schema, None, taken.fragments))
        if isinstance(taken, op.Merge | op.Project):
            return replace(taken, schema=_schema(taken.schema, schema))
        return taken
    except InvalidInputError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInputError(f"{name} has an invalid field", found=str(error)) from error


def from_transaction(transaction: wire.Transaction) -> Transaction:
    """Convert a transaction to pylance's class.

    Raises:
        CorruptError: The transaction is inconsistent.
    """
    operation = op.operation_from_proto(transaction.proto, f"transaction {transaction.uuid}")
    public = LanceOperation.BaseOperation() if operation is None else _shown(operation)
    return Transaction(transaction.read_version, public, transaction.uuid, dict(transaction.transaction_properties))


def _taken(form: type, public: Any) -> Any:
    """Convert an operation or a nested object, except for its schema."""
    types, values = field_types(form), {}
    for field in fields(getattr(LanceOperation, form.__name__)):
        value = getattr(public, field.name)
        if value is not None or field.default is not None:
            values[field.name] = converted(value, types[field.name], _TAKEN)
    return form(**values)


def _shown(part: Any) -> Any:
    """Convert an operation or a nested object to pylance's class."""
    form: type = type(part)
    public, types, values = getattr(LanceOperation, form.__name__), field_types(form), {}
    for field in fields(public):
        value = converted(getattr(part, field.name), types[field.name], _SHOWN, list)
        values[field.name] = None if field.default is None and value in ([], {}) else value
    return public(**values)


def _fragment(metadata: Any) -> Fragment:
    if not isinstance(metadata, FragmentMetadata):
        raise InvalidInputError("fragments", expected="FragmentMetadata", found=type(metadata).__name__)
    return fragment_from(metadata)


def _schema(schema: Any, existing: Schema | None, fragments: Iterable[Fragment] = ()) -> Schema:
    if isinstance(schema, Schema | LanceSchema):
        return known_schema(schema)
    if not isinstance(schema, pa.Schema):
        raise InvalidInputError("schema", expected="a pyarrow.Schema or a LanceSchema", found=type(schema).__name__)
    version = next((file.version for f in fragments for file in f.files), "2.2")
    return schema_from_arrow(schema, version, existing=existing)


def _keys(data: bytes) -> KeyExistenceFilter:
    try:
        return KeyExistenceFilter.FromString(data)
    except DecodeError as error:
        raise InvalidInputError("inserted_rows is not a filter", where="Update") from error


def _map(update: LanceOperation.UpdateMap | Mapping[str, str | None] | None) -> op.UpdateMap:
    if update is None or isinstance(update, Mapping):
        return op.UpdateMap(dict(update or {}))
    return op.UpdateMap(dict(update.updates), update.replace)


def index_metadata(index: Index) -> IndexMetadata:
    """Convert a user's segment to manifest metadata. Raises InvalidInputError if it is invalid."""
    if not isinstance(index, Index):
        raise InvalidInputError("the index segments have the wrong type", expected="Index", found=type(index).__name__)
    proto = table_pb2.IndexMetadata(
        uuid={"uuid": _uuid(index.uuid).bytes},
        fields=index.fields,
        name=index.name,
        dataset_version=index.dataset_version,
        index_version=index.index_version,
        base_id=index.base_id,
        files=[{"path": f.path, "size_bytes": f.size_bytes} for f in index.files or ()],
        covering_fields=index.covering_fields,
    )
    if index.fragment_ids is not None:
        proto.fragment_bitmap = roaring_bytes(np.fromiter(index.fragment_ids, np.uint32))
    if index.created_at is not None:
        proto.created_at = round(index.created_at.astimezone(UTC).timestamp() * 1000)
    if index.index_details is not None:
        proto.index_details.type_url, proto.index_details.value = index.index_details
    return index_from_proto(proto, "Index")


def shown_index(index: IndexMetadata) -> Index:
    """Convert a segment to pylance's class. Raises CorruptError if its fragment bitmap is damaged."""
    bitmap = index.fragment_bitmap
    where = f"fragments of index {index.name!r}"
    ids = None if bitmap is None else set(fragments_in_bitmap(bitmap, where).tolist())
    return Index(
        str(index.uuid),
        index.name,
        list(index.fields),
        index.dataset_version,
        ids,
        index.version,
        index.created_at,
        index.base_id,
        [IndexFile(path, size) for path, size in index.files] or None,
        None if index.details_type is None else (index.details_type, index.details),
        list(index.proto.covering_fields),
    )


def _uuid(value: Any) -> UUID:
    try:
        return UUID(str(value))
    except ValueError:
        raise InvalidInputError("invalid uuid of an index", found=repr(value)) from None


def _base(base: DatasetBasePath) -> BasePath:
    return BasePath(base.id or 0, base.name, base.is_dataset_root, base.path)


def _shown_overlays(group: op.DataOverlayGroup) -> LanceOperation.DataOverlayGroup:
    overlays = [overlay_of(overlay, group.fragment_id) for overlay in group.overlays]
    return LanceOperation.DataOverlayGroup(group.fragment_id, overlays)


_TAKEN: Final[Parts] = {
    Fragment: _fragment,
    DataFile: data_file_from,
    Overlay: overlay_from,
    IndexMetadata: index_metadata,
    BasePath: _base,
    UUID: _uuid,
    KeyExistenceFilter: _keys,
    op.UpdateMap: _map,
    **{
        form: partial(_taken, form)
        for form in (op.RewriteGroup, op.RewrittenIndex, op.DataReplacementGroup, op.DataOverlayGroup)
    },
}
_SHOWN: Final[Parts] = {
    Fragment: metadata_of,
    DataFile: data_file_of,
    Schema: LanceSchema,
    IndexMetadata: shown_index,
    BasePath: shown_base,
    UUID: str,
    KeyExistenceFilter: KeyExistenceFilter.SerializeToString,
    op.DataOverlayGroup: _shown_overlays,
    **dict.fromkeys((op.UpdateMap, op.RewriteGroup, op.RewrittenIndex, op.DataReplacementGroup), _shown),
}
