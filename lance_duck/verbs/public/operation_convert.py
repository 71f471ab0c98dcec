"""Conversion between operations in pylance's shape and those that are committed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_duck import commit as op
from lance_duck.commit.operations import KeyExistenceFilter
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.rows import fragments_in_bitmap, roaring_bytes
from lance_duck.verbs.public.bases import DatasetBasePath
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
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.index import IndexMetadata, index_from_proto
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.pb import table_pb2
from lance_duck.wire.schema import Schema
from lance_duck.wire.schema_write import schema_from_arrow

_FORMS = LanceOperation


def to_operation(operation: Any, schema: Schema | None) -> op.Operation:
    """Convert an operation of a user to one that can be committed.

    Args:
        operation: One of `LanceOperation`.
        schema: Schema of the version that it was made from; None if there is no table yet.

    Raises:
        InvalidInputError: The object is no operation, or a part of it is invalid.
        UnsupportedError: The operation is of a newer format.
    """
    if type(operation) is _FORMS.BaseOperation:
        raise UnsupportedError("an operation of a newer format cannot be committed")
    convert = _TO.get(type(operation))
    if convert is None:
        raise InvalidInputError("not an operation", expected="one of LanceOperation", found=type(operation).__name__)
    try:
        return convert(operation, schema)
    except (TypeError, AttributeError, OverflowError) as error:
        raise InvalidInputError(f"invalid part of {type(operation).__name__}", found=str(error)) from error


def from_transaction(transaction: wire.Transaction) -> Transaction:
    """Convert a transaction to pylance's shape.

    Raises:
        CorruptError: The transaction contradicts itself.
    """
    operation = op.operation_from_proto(transaction.proto, f"transaction {transaction.uuid}")
    public = _FORMS.BaseOperation() if operation is None else _FROM[type(operation)](operation)
    return Transaction(transaction.read_version, public, transaction.uuid, dict(transaction.transaction_properties))


def _fragments(fragments: Iterable[FragmentMetadata]) -> tuple[Fragment, ...]:
    metadata = tuple(fragments)
    for entry in metadata:
        if not isinstance(entry, FragmentMetadata):
            raise InvalidInputError("fragments", expected="FragmentMetadata", found=type(entry).__name__)
    return tuple(fragment_from(entry) for entry in metadata)


def _metadata(fragments: Iterable[Fragment]) -> list[FragmentMetadata]:
    return [metadata_of(f) for f in fragments]


def _schema(schema: Any, existing: Schema | None, fragments: Iterable[Fragment] = ()) -> Schema:
    if isinstance(schema, Schema | LanceSchema):
        return known_schema(schema)
    if not isinstance(schema, pa.Schema):
        raise InvalidInputError("schema", expected="a pyarrow.Schema or a LanceSchema", found=type(schema).__name__)
    version = next((file.version for f in fragments for file in f.files), "2.2")
    return schema_from_arrow(schema, version, existing=existing)


def _overwrite(operation: LanceOperation.Overwrite, _: Schema | None) -> op.Overwrite:
    fragments = _fragments(operation.fragments)
    bases = tuple(_base(b) for b in operation.initial_bases or ())
    return op.Overwrite(_schema(operation.new_schema, None, fragments), fragments, initial_bases=bases)


def _update(operation: LanceOperation.Update, _: Schema | None) -> op.Update:
    return op.Update(
        tuple(operation.removed_fragment_ids),
        _fragments(operation.updated_fragments),
        _fragments(operation.new_fragments),
        tuple(operation.fields_modified),
        tuple(operation.fields_for_preserving_frag_bitmap),
        operation.update_mode or op.REWRITE_ROWS,
        None if operation.inserted_rows is None else _keys(operation.inserted_rows),
        dict(operation.updated_fragment_offsets or {}),
    )


def _keys(data: bytes) -> KeyExistenceFilter:
    try:
        return KeyExistenceFilter.FromString(data)
    except DecodeError as error:
        raise InvalidInputError("inserted_rows is not a filter", where="Update") from error


def _rewrite(operation: LanceOperation.Rewrite, _: Schema | None) -> op.Rewrite:
    groups = tuple(op.RewriteGroup(_fragments(g.old_fragments), _fragments(g.new_fragments)) for g in operation.groups)
    return op.Rewrite(groups, tuple(_rewritten(i) for i in operation.rewritten_indices))


def _rewritten(index: LanceOperation.RewrittenIndex) -> op.RewrittenIndex:
    return op.RewrittenIndex(
        _uuid(index.old_id),
        _uuid(index.new_id),
        index.new_details_type_url,
        index.new_details_value,
        index.new_index_version,
    )


def _map(update: LanceOperation.UpdateMap | Mapping[str, str | None] | None) -> op.UpdateMap | None:
    if update is None:
        return None
    if isinstance(update, Mapping):
        return op.UpdateMap(dict(update))
    return op.UpdateMap(dict(update.updates), update.replace)


def _update_config(operation: LanceOperation.UpdateConfig, _: Schema | None) -> op.UpdateConfig:
    fields = {i: _map(m) or op.UpdateMap({}) for i, m in (operation.field_metadata_updates or {}).items()}
    return op.UpdateConfig(
        _map(operation.config_updates),
        _map(operation.table_metadata_updates),
        _map(operation.schema_metadata_updates),
        fields,
    )


def index_metadata(index: Index) -> IndexMetadata:
    """Return the metadata in a manifest of a segment from a user; raises InvalidInputError if it is invalid."""
    if not isinstance(index, Index):
        raise InvalidInputError("index segments", expected="Index", found=type(index).__name__)
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
    """Return a segment in pylance's shape; raises CorruptError if its fragments are damaged."""
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
        raise InvalidInputError("uuid of an index", found=repr(value)) from None


def _base(base: DatasetBasePath) -> BasePath:
    return BasePath(base.id or 0, base.name, base.is_dataset_root, base.path)


def _shown_base(base: BasePath) -> DatasetBasePath:
    return DatasetBasePath(base.path, base.name, base.is_dataset_root, base.id)


def _replacement(group: LanceOperation.DataReplacementGroup) -> op.DataReplacementGroup:
    return op.DataReplacementGroup(group.fragment_id, data_file_from(group.new_file))


def _overlays(group: LanceOperation.DataOverlayGroup) -> op.DataOverlayGroup:
    return op.DataOverlayGroup(group.fragment_id, tuple(map(overlay_from, group.overlays)))


def _shown_overlays(group: op.DataOverlayGroup) -> LanceOperation.DataOverlayGroup:
    return _FORMS.DataOverlayGroup(group.fragment_id, [overlay_of(o, group.fragment_id) for o in group.overlays])


_TO: Mapping[type, Callable[[Any, Schema | None], op.Operation]] = {
    _FORMS.Append: lambda g, _: op.Append(_fragments(g.fragments)),
    _FORMS.Delete: lambda g, _: op.Delete(_fragments(g.updated_fragments), tuple(g.deleted_fragment_ids), g.predicate),
    _FORMS.Overwrite: _overwrite,
    _FORMS.Update: _update,
    _FORMS.Merge: lambda g, schema: op.Merge(
        _fragments(g.fragments), _schema(g.schema, schema), g.preserves_nullability
    ),
    _FORMS.Project: lambda g, schema: op.Project(_schema(g.schema, schema), g.preserves_nullability),
    _FORMS.Rewrite: _rewrite,
    _FORMS.ReserveFragments: lambda g, _: op.ReserveFragments(g.num_fragments),
    _FORMS.Restore: lambda g, _: op.Restore(g.version),
    _FORMS.CreateIndex: lambda g, _: op.CreateIndex(
        tuple(map(index_metadata, g.new_indices)), tuple(map(index_metadata, g.removed_indices))
    ),
    _FORMS.DataReplacement: lambda g, _: op.DataReplacement(tuple(map(_replacement, g.replacements))),
    _FORMS.DataOverlay: lambda g, _: op.DataOverlay(tuple(map(_overlays, g.groups))),
    _FORMS.UpdateConfig: _update_config,
    _FORMS.Clone: lambda g, _: op.Clone(g.is_shallow, g.ref_name, g.ref_version, g.ref_path, g.branch_name),
    _FORMS.UpdateBases: lambda g, _: op.UpdateBases(tuple(map(_base, g.new_bases))),
}


def _shown_update(operation: op.Update) -> LanceOperation.Update:
    return _FORMS.Update(
        list(operation.removed_fragment_ids),
        _metadata(operation.updated_fragments),
        _metadata(operation.new_fragments),
        list(operation.fields_modified),
        list(operation.fields_for_preserving_frag_bitmap),
        operation.update_mode,
        dict(operation.updated_fragment_offsets) or None,
        None if operation.inserted_rows is None else operation.inserted_rows.SerializeToString(),
    )


def _shown_rewrite(operation: op.Rewrite) -> LanceOperation.Rewrite:
    groups = [_FORMS.RewriteGroup(_metadata(g.old_fragments), _metadata(g.new_fragments)) for g in operation.groups]
    indices = [
        _FORMS.RewrittenIndex(
            str(i.old_id), str(i.new_id), i.new_details_type_url, i.new_details_value, i.new_index_version
        )
        for i in operation.rewritten_indices
    ]
    return _FORMS.Rewrite(groups, indices)


def _shown_map(update: op.UpdateMap | None) -> LanceOperation.UpdateMap | None:
    return None if update is None else _FORMS.UpdateMap(dict(update.updates), update.replace)


def _shown_config(operation: op.UpdateConfig) -> LanceOperation.UpdateConfig:
    fields = {i: _FORMS.UpdateMap(dict(m.updates), m.replace) for i, m in operation.field_metadata_updates.items()}
    return _FORMS.UpdateConfig(
        _shown_map(operation.config_updates),
        _shown_map(operation.table_metadata_updates),
        _shown_map(operation.schema_metadata_updates),
        fields or None,
    )


_FROM: Mapping[type, Callable[[Any], LanceOperation.BaseOperation]] = {
    op.Append: lambda o: _FORMS.Append(_metadata(o.fragments)),
    op.Delete: lambda o: _FORMS.Delete(_metadata(o.updated_fragments), list(o.deleted_fragment_ids), o.predicate),
    op.Overwrite: lambda o: _FORMS.Overwrite(
        LanceSchema(o.new_schema), _metadata(o.fragments), [_shown_base(b) for b in o.initial_bases] or None
    ),
    op.Update: _shown_update,
    op.Merge: lambda o: _FORMS.Merge(_metadata(o.fragments), LanceSchema(o.schema), o.preserves_nullability),
    op.Project: lambda o: _FORMS.Project(LanceSchema(o.schema), o.preserves_nullability),
    op.Rewrite: _shown_rewrite,
    op.ReserveFragments: lambda o: _FORMS.ReserveFragments(o.num_fragments),
    op.Restore: lambda o: _FORMS.Restore(o.version),
    op.CreateIndex: lambda o: _FORMS.CreateIndex(
        [shown_index(i) for i in o.new_indices], [shown_index(i) for i in o.removed_indices]
    ),
    op.DataReplacement: lambda o: _FORMS.DataReplacement(
        [_FORMS.DataReplacementGroup(r.fragment_id, data_file_of(r.new_file)) for r in o.replacements]
    ),
    op.DataOverlay: lambda o: _FORMS.DataOverlay([_shown_overlays(g) for g in o.groups]),
    op.UpdateConfig: _shown_config,
    op.Clone: lambda o: _FORMS.Clone(o.is_shallow, o.ref_name, o.ref_version, o.ref_path, o.branch_name),
    op.UpdateBases: lambda o: _FORMS.UpdateBases([_shown_base(b) for b in o.new_bases]),
}
