"""Operations as messages of a transaction, and the inverse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from lance_duck.commit import operations as op
from lance_duck.errors import InvalidInputError
from lance_duck.wire.files.overlay import overlay_from_proto
from lance_duck.wire.fragment import Fragment, data_file_from_proto, fragment_from_proto
from lance_duck.wire.fragment_write import data_file_to_proto, fragment_to_proto, overlay_to_proto
from lance_duck.wire.index import index_from_proto
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.pb import table_pb2, transaction_pb2
from lance_duck.wire.schema import Schema, schema_from_proto
from lance_duck.wire.schema_write import metadata_to_proto, schema_to_proto

_T = transaction_pb2.Transaction
_MODES = {op.REWRITE_ROWS: _T.REWRITE_ROWS, op.REWRITE_COLUMNS: _T.REWRITE_COLUMNS, "": _T.REWRITE_ROWS}


def set_operation(transaction: transaction_pb2.Transaction, operation: op.Operation) -> None:
    """Write an operation into a transaction.

    Raises:
        InvalidInputError: A part of the operation makes no sense.
    """
    arm, build = _BUILDERS[type(operation)]
    try:
        message = build(operation)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(f"invalid part of {operation.name}", found=str(error)) from error
    getattr(transaction, arm).CopyFrom(message)


def operation_from_proto(transaction: transaction_pb2.Transaction, where: str) -> op.Operation | None:
    """Return the operation of a transaction; None for one that is not known.

    Raises:
        CorruptError: The message contradicts itself.
    """
    arm = transaction.WhichOneof("operation")
    parse = _PARSERS.get(arm or "")
    return None if parse is None else parse(getattr(transaction, str(arm)), where)


def _fragments(fragments: Iterable[Fragment]) -> list[table_pb2.DataFragment]:
    return [fragment_to_proto(f) for f in fragments]


def _append(operation: op.Append) -> _T.Append:
    return _T.Append(fragments=_fragments(operation.fragments))


def _delete(operation: op.Delete) -> _T.Delete:
    return _T.Delete(
        updated_fragments=_fragments(operation.updated_fragments),
        deleted_fragment_ids=operation.deleted_fragment_ids,
        predicate=operation.predicate,
    )


def _overwrite(operation: op.Overwrite) -> _T.Overwrite:
    return _T.Overwrite(
        fragments=_fragments(operation.fragments),
        schema=schema_to_proto(operation.new_schema),
        schema_metadata=metadata_to_proto(operation.new_schema.metadata),
        config_upsert_values=dict(operation.config_upsert_values),
        initial_bases=[base_to_proto(b) for b in operation.initial_bases],
    )


def _update(operation: op.Update) -> _T.Update:
    return _T.Update(
        removed_fragment_ids=operation.removed_fragment_ids,
        updated_fragments=_fragments(operation.updated_fragments),
        new_fragments=_fragments(operation.new_fragments),
        fields_modified=operation.fields_modified,
        fields_for_preserving_frag_bitmap=operation.fields_for_preserving_frag_bitmap,
        update_mode=_mode(operation.update_mode),
        inserted_rows=operation.inserted_rows,
        updated_fragment_offset_bitmaps=dict(operation.updated_fragment_offsets),
    )


def _mode(name: str) -> Any:
    if name not in _MODES:
        raise InvalidInputError("update_mode", expected=" or ".join(filter(None, _MODES)), found=repr(name))
    return _MODES[name]


def _merge(operation: op.Merge) -> _T.Merge:
    return _T.Merge(
        fragments=_fragments(operation.fragments),
        schema=schema_to_proto(operation.schema),
        schema_metadata=metadata_to_proto(operation.schema.metadata),
        preserves_nullability=operation.preserves_nullability,
    )


def _project(operation: op.Project) -> _T.Project:
    return _T.Project(schema=schema_to_proto(operation.schema), preserves_nullability=operation.preserves_nullability)


def _rewrite(operation: op.Rewrite) -> _T.Rewrite:
    return _T.Rewrite(
        groups=[
            _T.Rewrite.RewriteGroup(
                old_fragments=_fragments(g.old_fragments), new_fragments=_fragments(g.new_fragments)
            )
            for g in operation.groups
        ],
        rewritten_indices=[_rewritten_index(i) for i in operation.rewritten_indices],
    )


def _rewritten_index(i: op.RewrittenIndex) -> _T.Rewrite.RewrittenIndex:
    proto = _T.Rewrite.RewrittenIndex(
        old_id={"uuid": i.old_id.bytes},
        new_id={"uuid": i.new_id.bytes},
        new_index_version=i.new_index_version,
        new_index_files=[{"path": path, "size_bytes": size} for path, size in i.new_index_files],
    )
    proto.new_index_details.type_url = i.new_details_type_url
    proto.new_index_details.value = i.new_details_value
    return proto


def _create_index(operation: op.CreateIndex) -> _T.CreateIndex:
    return _T.CreateIndex(
        new_indices=[i.proto for i in operation.new_indices],
        removed_indices=[i.proto for i in operation.removed_indices],
    )


def _data_replacement(operation: op.DataReplacement) -> _T.DataReplacement:
    groups = [
        _T.DataReplacementGroup(fragment_id=r.fragment_id, new_file=data_file_to_proto(r.new_file))
        for r in operation.replacements
    ]
    return _T.DataReplacement(replacements=groups)


def _data_overlay(operation: op.DataOverlay) -> _T.DataOverlay:
    groups = [
        _T.DataOverlayGroup(fragment_id=g.fragment_id, overlays=[overlay_to_proto(o) for o in g.overlays])
        for g in operation.groups
    ]
    return _T.DataOverlay(groups=groups)


def _update_config(operation: op.UpdateConfig) -> _T.UpdateConfig:
    return _T.UpdateConfig(
        config_updates=_map(operation.config_updates),
        table_metadata_updates=_map(operation.table_metadata_updates),
        schema_metadata_updates=_map(operation.schema_metadata_updates),
        field_metadata_updates={i: _whole_map(m) for i, m in operation.field_metadata_updates.items()},
    )


def _map(update: op.UpdateMap | None) -> _T.UpdateMap | None:
    return None if update is None else _whole_map(update)


def _whole_map(update: op.UpdateMap) -> _T.UpdateMap:
    entries = [_T.UpdateMap.Entry(key=key, value=value) for key, value in update.updates.items()]
    return _T.UpdateMap(update_entries=entries, replace=update.replace)


def _clone(operation: op.Clone) -> _T.Clone:
    return _T.Clone(
        is_shallow=operation.is_shallow,
        ref_name=operation.ref_name,
        ref_version=operation.ref_version,
        ref_path=operation.ref_path,
        branch_name=operation.branch_name,
    )


def _update_bases(operation: op.UpdateBases) -> _T.UpdateBases:
    return _T.UpdateBases(new_bases=[base_to_proto(b) for b in operation.new_bases])


def base_to_proto(base: BasePath) -> table_pb2.BasePath:
    """Return the message of a base path."""
    return table_pb2.BasePath(id=base.id, name=base.name, is_dataset_root=base.is_dataset_root, path=base.path)


_BUILDERS: Mapping[type[op.Operation], tuple[str, Callable[[Any], Any]]] = {
    op.Append: ("append", _append),
    op.Delete: ("delete", _delete),
    op.Overwrite: ("overwrite", _overwrite),
    op.Update: ("update", _update),
    op.Merge: ("merge", _merge),
    op.Project: ("project", _project),
    op.Rewrite: ("rewrite", _rewrite),
    op.ReserveFragments: ("reserve_fragments", lambda o: _T.ReserveFragments(num_fragments=o.num_fragments)),
    op.Restore: ("restore", lambda o: _T.Restore(version=o.version)),
    op.CreateIndex: ("create_index", _create_index),
    op.DataReplacement: ("data_replacement", _data_replacement),
    op.DataOverlay: ("data_overlay", _data_overlay),
    op.UpdateConfig: ("update_config", _update_config),
    op.Clone: ("clone", _clone),
    op.UpdateBases: ("update_bases", _update_bases),
}


def _parsed(fragments: Iterable[table_pb2.DataFragment], where: str) -> tuple[Fragment, ...]:
    return tuple(fragment_from_proto(f, where) for f in fragments)


def _schema(proto: Any) -> Schema:
    return schema_from_proto(proto.schema, getattr(proto, "schema_metadata", None))


def _parse_update(proto: _T.Update, where: str) -> op.Update:
    return op.Update(
        tuple(proto.removed_fragment_ids),
        _parsed(proto.updated_fragments, where),
        _parsed(proto.new_fragments, where),
        tuple(proto.fields_modified),
        tuple(proto.fields_for_preserving_frag_bitmap),
        op.REWRITE_COLUMNS if proto.update_mode == _T.REWRITE_COLUMNS else op.REWRITE_ROWS,
        proto.inserted_rows if proto.HasField("inserted_rows") else None,
        MappingProxyType(dict(proto.updated_fragment_offset_bitmaps)),
    )


def _parse_overwrite(proto: _T.Overwrite, where: str) -> op.Overwrite:
    return op.Overwrite(
        _schema(proto),
        _parsed(proto.fragments, where),
        MappingProxyType(dict(proto.config_upsert_values)),
        tuple(_base(b) for b in proto.initial_bases),
    )


def _parse_rewrite(proto: _T.Rewrite, where: str) -> op.Rewrite:
    pairs = [(g.old_fragments, g.new_fragments) for g in proto.groups]
    if proto.old_fragments or proto.new_fragments:
        pairs.append((proto.old_fragments, proto.new_fragments))
    groups = tuple(op.RewriteGroup(_parsed(old, where), _parsed(new, where)) for old, new in pairs)
    return op.Rewrite(groups, tuple(_parse_rewritten(i) for i in proto.rewritten_indices))


def _parse_rewritten(proto: _T.Rewrite.RewrittenIndex) -> op.RewrittenIndex:
    return op.RewrittenIndex(
        UUID(bytes=proto.old_id.uuid.rjust(16, b"\0")[:16]),
        UUID(bytes=proto.new_id.uuid.rjust(16, b"\0")[:16]),
        proto.new_index_details.type_url,
        proto.new_index_details.value,
        proto.new_index_version,
        tuple((f.path, f.size_bytes) for f in proto.new_index_files),
    )


def _parse_update_config(proto: _T.UpdateConfig, where: str) -> op.UpdateConfig:
    config, schema = _parse_map(proto, "config_updates"), _parse_map(proto, "schema_metadata_updates")
    fields = {i: _parse_entries(m) for i, m in proto.field_metadata_updates.items()}
    if proto.upsert_values or proto.delete_keys:
        config = op.UpdateMap({**dict(proto.upsert_values), **dict.fromkeys(proto.delete_keys)})
    if proto.schema_metadata:
        schema = op.UpdateMap(dict(proto.schema_metadata), replace=True)
    for i, update in proto.field_metadata.items():
        fields[i] = op.UpdateMap(dict(update.metadata), replace=True)
    return op.UpdateConfig(config, _parse_map(proto, "table_metadata_updates"), schema, MappingProxyType(fields))


def _parse_map(proto: _T.UpdateConfig, name: str) -> op.UpdateMap | None:
    return _parse_entries(getattr(proto, name)) if proto.HasField(name) else None


def _parse_entries(proto: _T.UpdateMap) -> op.UpdateMap:
    updates = {e.key: e.value if e.HasField("value") else None for e in proto.update_entries}
    return op.UpdateMap(updates, proto.replace)


def _parse_create_index(proto: _T.CreateIndex, where: str) -> op.CreateIndex:
    new, old = proto.new_indices, proto.removed_indices
    return op.CreateIndex(
        tuple(index_from_proto(i, where) for i in new), tuple(index_from_proto(i, where) for i in old)
    )


def _parse_data_replacement(proto: _T.DataReplacement, where: str) -> op.DataReplacement:
    groups = [
        op.DataReplacementGroup(r.fragment_id, data_file_from_proto(r.new_file, where)) for r in proto.replacements
    ]
    return op.DataReplacement(tuple(groups))


def _parse_data_overlay(proto: _T.DataOverlay, where: str) -> op.DataOverlay:
    return op.DataOverlay(
        tuple(
            op.DataOverlayGroup(g.fragment_id, tuple(overlay_from_proto(o, where) for o in g.overlays))
            for g in proto.groups
        )
    )


def _parse_clone(proto: _T.Clone, where: str) -> op.Clone:
    name = proto.ref_name if proto.HasField("ref_name") else None
    branch = proto.branch_name if proto.HasField("branch_name") else None
    return op.Clone(proto.is_shallow, name, proto.ref_version, proto.ref_path, branch)


def _base(proto: table_pb2.BasePath) -> BasePath:
    name = proto.name if proto.HasField("name") else None
    return BasePath(proto.id, name, proto.is_dataset_root, proto.path)


_PARSERS: Mapping[str, Callable[[Any, str], op.Operation]] = {
    "append": lambda p, where: op.Append(_parsed(p.fragments, where)),
    "delete": lambda p, where: op.Delete(
        _parsed(p.updated_fragments, where), tuple(p.deleted_fragment_ids), p.predicate
    ),
    "overwrite": _parse_overwrite,
    "update": _parse_update,
    "merge": lambda p, where: op.Merge(_parsed(p.fragments, where), _schema(p), p.preserves_nullability),
    "project": lambda p, where: op.Project(_schema(p), p.preserves_nullability),
    "rewrite": _parse_rewrite,
    "reserve_fragments": lambda p, where: op.ReserveFragments(p.num_fragments),
    "restore": lambda p, where: op.Restore(p.version),
    "create_index": _parse_create_index,
    "data_replacement": _parse_data_replacement,
    "data_overlay": _parse_data_overlay,
    "update_config": _parse_update_config,
    "clone": _parse_clone,
    "update_bases": lambda p, where: op.UpdateBases(tuple(_base(b) for b in p.new_bases)),
}
