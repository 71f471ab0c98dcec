"""Conversion between operations and transaction messages.

A message and its operation have the same name and the same fields, with the exceptions in this module.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from operator import attrgetter
from types import NoneType
from typing import Any, Final, get_args
from uuid import UUID

from lance_duck.commit import operations as op
from lance_duck.commit.operations import Parts, converted, field_types
from lance_duck.errors import InvalidInputError
from lance_duck.wire.files.overlay import Overlay, overlay_from_proto
from lance_duck.wire.fragment import DataFile, Fragment, data_file_from_proto, fragment_from_proto
from lance_duck.wire.fragment_write import data_file_to_proto, fragment_to_proto, overlay_to_proto
from lance_duck.wire.index import IndexMetadata, index_from_proto
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.pb import table_pb2, transaction_pb2
from lance_duck.wire.schema import Schema, schema_from_proto
from lance_duck.wire.schema_write import metadata_to_proto, schema_to_proto

_T = transaction_pb2.Transaction
_MODES: Final = {op.REWRITE_ROWS: _T.REWRITE_ROWS, op.REWRITE_COLUMNS: _T.REWRITE_COLUMNS}
_ARMS: Final = {form: re.sub(r"\B[A-Z]", r"_\g<0>", form.__name__).lower() for form in op.Operation.__subclasses__()}
"""The field of the transaction message that stores each operation."""
_OPERATIONS: Final = {arm: form for form, arm in _ARMS.items()}
_NAMES: Final = {"new_schema": "schema", "updated_fragment_offsets": "updated_fragment_offset_bitmaps"}
"""Operation fields that have a different name in messages, with this name."""
_PARTS: Final = {
    op.RewriteGroup: _T.Rewrite.RewriteGroup,
    op.DataReplacementGroup: _T.DataReplacementGroup,
    op.DataOverlayGroup: _T.DataOverlayGroup,
    BasePath: table_pb2.BasePath,
}
"""Nested operation classes with the same fields as their messages."""


def set_operation(transaction: transaction_pb2.Transaction, operation: op.Operation) -> None:
    """Store an operation in a transaction message.

    Raises:
        InvalidInputError: The operation contains an invalid value.
    """
    arm = _ARMS[type(operation)]
    try:
        message = _message(operation)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(f"invalid part of {operation.name}", found=str(error)) from error
    getattr(transaction, arm).CopyFrom(message)


def operation_from_proto(transaction: transaction_pb2.Transaction, where: str) -> op.Operation | None:
    """Return the operation of a transaction message, or None if the operation is unknown.

    Raises:
        CorruptError: The message is inconsistent.
    """
    arm = transaction.WhichOneof("operation")
    form = _OPERATIONS.get(arm or "")
    if form is None:
        return None
    message = getattr(transaction, str(arm))
    operation: op.Operation = _read(form, message, where)
    if isinstance(operation, op.Rewrite) and (message.old_fragments or message.new_fragments):
        only_group = _read(op.RewriteGroup, message, where)
        return replace(operation, groups=(*operation.groups, only_group))
    return _with_older_settings(operation, message) if isinstance(operation, op.UpdateConfig) else operation


def _message(part: Any) -> Any:
    """Return the message of an operation or a nested object."""
    form: type = type(part)
    values = {
        _NAMES.get(field, field): converted(getattr(part, field), kind, _WRITERS)
        for field, kind in field_types(form).items()
    }
    if isinstance(part, op.Update):
        values["update_mode"] = _mode(part.update_mode)
    elif isinstance(part, op.Overwrite | op.Merge):
        schema = part.new_schema if isinstance(part, op.Overwrite) else part.schema
        values["schema_metadata"] = metadata_to_proto(schema.metadata)
    return (_PARTS.get(form) or getattr(_T, form.__name__))(**values)


def _mode(name: str) -> Any:
    mode = _MODES.get(name or op.REWRITE_ROWS)
    if mode is None:
        raise InvalidInputError("update_mode", expected=" or ".join(_MODES), found=repr(name))
    return mode


def _index_message(i: op.RewrittenIndex) -> _T.Rewrite.RewrittenIndex:
    return _T.Rewrite.RewrittenIndex(
        old_id={"uuid": i.old_id.bytes},
        new_id={"uuid": i.new_id.bytes},
        new_index_details={"type_url": i.new_details_type_url, "value": i.new_details_value},
        new_index_version=i.new_index_version,
        new_index_files=[{"path": path, "size_bytes": size} for path, size in i.new_index_files],
    )


def _sstable_message(table: op.CompactedSsTable) -> _T.CompactedSsTable:
    return _T.CompactedSsTable(shard_id={"uuid": table.shard_id.bytes}, generation=table.generation)


def _map_message(update: op.UpdateMap) -> _T.UpdateMap:
    entries = [_T.UpdateMap.Entry(key=key, value=value) for key, value in update.updates.items()]
    return _T.UpdateMap(update_entries=entries, replace=update.replace)


_WRITERS: Final[Parts] = {
    Fragment: fragment_to_proto,
    DataFile: data_file_to_proto,
    Overlay: overlay_to_proto,
    Schema: schema_to_proto,
    IndexMetadata: attrgetter("proto"),
    op.UpdateMap: _map_message,
    op.RewrittenIndex: _index_message,
    op.CompactedSsTable: _sstable_message,
    **dict.fromkeys(_PARTS, _message),
}


def _read(form: type, message: Any, where: str) -> Any:
    """Return the operation or nested object that a message contains."""
    readers = _readers(where)
    values = {
        field: converted(_stored(message, field, kind), kind, readers) for field, kind in field_types(form).items()
    }
    if form is op.Update:
        values["update_mode"] = op.REWRITE_COLUMNS if message.update_mode == _T.REWRITE_COLUMNS else op.REWRITE_ROWS
    return form(**values)


def _stored(message: Any, field: str, kind: Any) -> Any:
    if kind is Schema:
        return message
    name = _NAMES.get(field, field)
    return None if NoneType in get_args(kind) and not message.HasField(name) else getattr(message, name)


def _readers(where: str) -> Parts:
    return {
        Fragment: partial(fragment_from_proto, where=where),
        DataFile: partial(data_file_from_proto, where=where),
        Overlay: partial(overlay_from_proto, where=where),
        Schema: lambda message: schema_from_proto(message.schema, getattr(message, "schema_metadata", None)),
        IndexMetadata: partial(index_from_proto, where=where),
        op.UpdateMap: _map,
        op.RewrittenIndex: _index,
        op.CompactedSsTable: lambda message: op.CompactedSsTable(_uuid(message.shard_id), message.generation),
        **{form: partial(_read, form, where=where) for form in _PARTS},
    }


def _map(message: _T.UpdateMap) -> op.UpdateMap:
    updates = {e.key: e.value if e.HasField("value") else None for e in message.update_entries}
    return op.UpdateMap(updates, message.replace)


def _index(message: _T.Rewrite.RewrittenIndex) -> op.RewrittenIndex:
    return op.RewrittenIndex(
        _uuid(message.old_id),
        _uuid(message.new_id),
        message.new_index_details.type_url,
        message.new_index_details.value,
        message.new_index_version,
        tuple((f.path, f.size_bytes) for f in message.new_index_files),
    )


def _uuid(message: table_pb2.UUID) -> UUID:
    return UUID(bytes=message.uuid.rjust(16, b"\0")[:16])


def _with_older_settings(operation: op.UpdateConfig, message: _T.UpdateConfig) -> op.UpdateConfig:
    """Add the changes to settings and metadata that older writers stored in separate fields."""
    if message.upsert_values or message.delete_keys:
        changed = {**dict(message.upsert_values), **dict.fromkeys(message.delete_keys)}
        operation = replace(operation, config_updates=op.UpdateMap(changed))
    if message.schema_metadata:
        metadata = op.UpdateMap(dict(message.schema_metadata), replace=True)
        operation = replace(operation, schema_metadata_updates=metadata)
    older = {i: op.UpdateMap(dict(update.metadata), replace=True) for i, update in message.field_metadata.items()}
    return replace(operation, field_metadata_updates={**operation.field_metadata_updates, **older})
