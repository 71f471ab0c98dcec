"""Builds the manifest of a new version from the previous manifest and a transaction, without reading or writing files.

All fields that this module does not set, including unknown fields, are copied from the previous manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from lance_duck.commit import index_coverage as coverage
from lance_duck.commit.footprint import overlaid_offsets
from lance_duck.commit.fragment_list import FragmentList
from lance_duck.commit.manifest_draft import ManifestDraft, copy_of
from lance_duck.commit.row_lineage import given_row_ids, touch_rows, touch_some_rows
from lance_duck.commit.table_metadata import (
    apply_config,
    apply_field_metadata,
    follow_columns,
    forget_row_labels,
    set_schema,
)
from lance_duck.errors import IncompatibleError, InternalError, InvalidInputError, RetryableError, UnsupportedError
from lance_duck.rows import roaring_bytes
from lance_duck.snapshot import derived, mem_wal
from lance_duck.wire import flags
from lance_duck.wire.fragment import LEGACY, TOMBSTONE, UNSTABLE, version_of_first, version_text
from lance_duck.wire.manifest import WRITER
from lance_duck.wire.pb import table_pb2, transaction_pb2

_FILE_FORMAT = "lance"
_FRAGMENT_TREE = 22


def build_manifest(
    base: ManifestDraft, transaction: transaction_pb2.Transaction, version: int, restored: ManifestDraft | None = None
) -> ManifestDraft:
    """Build the manifest of the next version. The caller sets its writer, time and transaction file name.

    Args:
        base: The previous version. Not changed. Only an append accepts `fragment_bytes`.
        transaction: The change, already rebased onto `base`.
        version: Number of the new version.
        restored: The version that a Restore returns to.

    Raises:
        InvalidInputError: The operation is invalid.
        IncompatibleError: A fragment of the operation no longer exists.
        UnsupportedError: The operation, or a feature of the table, is unknown.
    """
    _refuse_tree(base.manifest)
    arm = transaction.WhichOneof("operation")
    if arm == "restore":
        return _restore(base, restored, version)
    change = _CHANGES.get(arm or "")
    if change is None:
        raise UnsupportedError(f"operation {arm or 'of an unknown kind'} cannot be committed")
    draft = base.copied()
    draft.manifest.version = version
    draft.manifest.ClearField("tag")
    draft.manifest.ClearField("version_aux_data")
    if arm in _OUTDATING:
        coverage.withdraw_overlaid(draft.segments, draft.manifest.fragments, draft.manifest.fields)
    change(draft, getattr(transaction, str(arm)), version)
    if arm == "rewrite":
        coverage.date(draft.segments, transaction.rewrite, transaction.read_version)
    _finish(draft, len(base.manifest.fragments) if arm in _ADDING else 0)
    if arm in ("append", "delete", "update"):
        forget_row_labels(draft.manifest)
    if arm in ("merge", "project"):
        derived.check_definitions(base.manifest, draft.manifest)
        follow_columns(base.manifest, draft.manifest)
        mem_wal.check_schema_change(base.manifest, draft.manifest, base.segments)
    mem_wal.forget_progress(base.segments, draft.segments)
    draft.move_added()
    return draft


def first_manifest(
    operation: transaction_pb2.Transaction.Overwrite, data_storage_version: str, *, stable_row_ids: bool
) -> ManifestDraft:
    """Build version 1 of a table from the Overwrite that creates it."""
    manifest = table_pb2.Manifest(version=1)
    manifest.data_format.file_format = _FILE_FORMAT
    manifest.data_format.version = data_storage_version
    manifest.writer_version.library = WRITER
    if stable_row_ids:
        manifest.reader_feature_flags = manifest.writer_feature_flags = flags.STABLE_ROW_IDS
    draft = ManifestDraft(manifest, [])
    _add_bases(manifest, operation.initial_bases)
    _overwrite(draft, operation, 1)
    _finish(draft)
    return draft


def _append(draft: ManifestDraft, operation: transaction_pb2.Transaction.Append, version: int) -> None:
    _check_files(draft.manifest, operation.fragments)
    FragmentList(draft.manifest, version).append(operation.fragments)


def _delete(draft: ManifestDraft, operation: transaction_pb2.Transaction.Delete, version: int) -> None:
    fragments = FragmentList(draft.manifest, version)
    for fragment in operation.updated_fragments:
        fragments.replace(fragment)
    fragments.remove(operation.deleted_fragment_ids)


def _overwrite(draft: ManifestDraft, operation: transaction_pb2.Transaction.Overwrite, version: int) -> None:
    if any(f.HasField("deletion_file") for f in operation.fragments):
        raise InvalidInputError(
            "a new fragment cannot have a deletion file", where="Overwrite", remedy="delete rows afterwards"
        )
    manifest = draft.manifest
    fragments = FragmentList(manifest, version)
    fragments.clear()
    draft.segments.clear()
    set_schema(manifest, operation.schema, operation.schema_metadata)
    for key, value in operation.config_upsert_values.items():
        manifest.config[key] = value
    versions = {_file_version(f) for fragment in operation.fragments for f in fragment.files}
    if versions and manifest.data_format.version not in versions:
        manifest.data_format.version = max(versions)
    _check_files(manifest, operation.fragments)
    fragments.append(operation.fragments)


def _update(draft: ManifestDraft, operation: transaction_pb2.Transaction.Update, version: int) -> None:
    fragments = FragmentList(draft.manifest, version)
    updates = list(operation.updated_fragments)
    _check_files(draft.manifest, operation.new_fragments)
    _check_files(draft.manifest, updates)
    for fragment in updates:
        fragments.replace(fragment)
    if operation.fields_modified:
        modified = coverage.family(operation.fields_modified, draft.manifest.fields)
        coverage.withdraw(draft.segments, [f.id for f in updates], modified)
        if fragments.is_stable:
            _touch_updated(fragments, operation, version)
    pure = [fragments.is_stable and _given_rows(f) == f.physical_rows for f in operation.new_fragments]
    new_ids = fragments.append(operation.new_fragments)
    fragments.remove(operation.removed_fragment_ids)
    pure_ids = [i for i, is_pure in zip(new_ids, pure, strict=True) if is_pure]
    if pure_ids and operation.update_mode != transaction_pb2.Transaction.REWRITE_COLUMNS:
        values = coverage.family(operation.fields_for_preserving_frag_bitmap, draft.manifest.fields)
        sources = [*(f.id for f in updates), *operation.removed_fragment_ids]
        coverage.extend_to_moved(draft.segments, pure_ids, sources, values)
    mem_wal.note_progress(draft.segments, operation.compacted_sstables)


def _touch_updated(fragments: FragmentList, operation: transaction_pb2.Transaction.Update, version: int) -> None:
    for proto in operation.updated_fragments:
        fragment, bitmap = fragments.get(proto.id), operation.updated_fragment_offset_bitmaps.get(proto.id)
        if bitmap:
            touch_some_rows(fragment, version, bitmap)
        else:
            touch_rows(fragment, version)


def _merge(draft: ManifestDraft, operation: transaction_pb2.Transaction.Merge, version: int) -> None:
    fragments = FragmentList(draft.manifest, version)
    before = {f.id: {i: d.path for d in f.files for i in d.fields if i >= 0} for f in draft.manifest.fragments}
    _check_files(draft.manifest, operation.fragments)
    fragments.set_all(operation.fragments)
    for fragment in operation.fragments:
        paths = {i: d.path for d in fragment.files for i in d.fields if i >= 0}
        old = before.get(fragment.id, paths)
        if paths == old:
            continue
        if fragments.is_stable:
            touch_rows(fragments.get(fragment.id), version)
        field_ids = {i for i, path in old.items() if paths.get(i, path) != path}
        if field_ids:
            coverage.withdraw(draft.segments, [fragment.id], coverage.family(field_ids, draft.manifest.fields))
    set_schema(draft.manifest, operation.schema, operation.schema_metadata)


def _project(draft: ManifestDraft, operation: transaction_pb2.Transaction.Project, version: int) -> None:
    field_ids = {f.id for f in operation.schema}

    def drop_files(fragment: table_pb2.DataFragment) -> None:
        files = [f for f in fragment.files if not field_ids.isdisjoint(f.fields)]
        overlays = [o for o in fragment.overlays if not field_ids.isdisjoint(o.data_file.fields)]
        if len(files) < len(fragment.files) or len(overlays) < len(fragment.overlays):
            copies = table_pb2.DataFragment(files=files, overlays=overlays)
            fragment.ClearField("files")
            fragment.ClearField("overlays")
            fragment.MergeFrom(copies)

    FragmentList(draft.manifest, version).change_all(drop_files)
    set_schema(draft.manifest, operation.schema, None)


def _rewrite(draft: ManifestDraft, operation: transaction_pb2.Transaction.Rewrite, version: int) -> None:
    fragments = FragmentList(draft.manifest, version)
    was_legacy = version_of_first(draft.manifest.fragments) == LEGACY
    mixed_before = draft.manifest.reader_feature_flags & flags.MIXED_VERSIONS
    rewrite = copy_of(operation)
    for group in rewrite.groups:
        if not was_legacy:
            _check_files(draft.manifest, group.new_fragments)
        for fragment in group.new_fragments:
            if fragments.is_stable and fragment.WhichOneof("row_id_sequence") is None:
                raise InvalidInputError("a rewritten fragment does not have row ids", where="Rewrite")
            if fragment.id:
                fragments.note_id(fragment.id)
            else:
                fragment.id = fragments.next_id()
            if fragments.is_stable and fragment.WhichOneof("last_updated_at_version_sequence") is None:
                touch_rows(fragment, version)
    fragments.swap([([f.id for f in g.old_fragments], g.new_fragments) for g in rewrite.groups])
    if was_legacy:
        _leave_legacy(draft.manifest)
    else:
        _leave_unstable(draft.manifest, mixed_before)
    coverage.rewrite(draft.segments, rewrite, stable=fragments.is_stable)


def _leave_legacy(manifest: table_pb2.Manifest) -> None:
    """Record that all files in format 0.1 were rewritten. A table cannot mix them with files of other formats."""
    files = (file for fragment in manifest.fragments for file in fragment.files)
    versions = {_file_version(file) for file in files}
    if LEGACY in versions and len(versions) > 1:
        raise RetryableError(
            "a table cannot mix data files of version 0.1 and 2.x",
            found=", ".join(sorted(versions)),
            remedy="compact all fragments of the table in one commit",
        )
    manifest.data_format.version = max(versions, default=LEGACY)
    for field in manifest.fields:
        if field.HasField("dictionary") and LEGACY not in versions:
            field.dictionary.Clear()  # only 0.1 files use its values, which the old manifest file stores


def _leave_unstable(manifest: table_pb2.Manifest, mixed_before: int) -> None:
    """If no 2.3 file remains, set the table's file version to the newest remaining version, for later writes.

    Unless different file versions remain or were mixed before, the mixed-version flags are cleared.
    """
    versions = {_file_version(file) for fragment in manifest.fragments for file in fragment.files}
    if manifest.data_format.version != UNSTABLE or not versions or UNSTABLE in versions:
        return
    manifest.data_format.version = max(versions)
    if len(versions) == 1 and not mixed_before:  # `_check_files` set the flags in this commit
        manifest.reader_feature_flags &= ~flags.MIXED_VERSIONS
        manifest.writer_feature_flags &= ~flags.MIXED_VERSIONS


def _reserve(draft: ManifestDraft, operation: transaction_pb2.Transaction.ReserveFragments, version: int) -> None:
    if operation.num_fragments:
        FragmentList(draft.manifest, version).next_id(operation.num_fragments)


def _create_index(draft: ManifestDraft, operation: transaction_pb2.Transaction.CreateIndex, version: int) -> None:
    for segment in operation.new_indices:
        if segment.name not in coverage.SYSTEM:
            _check_fields(draft.manifest, segment.fields, f"index {segment.name!r}")
    old_uuids = {i.uuid.uuid for i in (*operation.removed_indices, *operation.new_indices)}
    draft.segments[:] = [s for s in draft.segments if s.uuid.uuid not in old_uuids]
    draft.segments.extend(copy_of(i) for i in operation.new_indices)


def _replace_data(draft: ManifestDraft, operation: transaction_pb2.Transaction.DataReplacement, version: int) -> None:
    fragments = FragmentList(draft.manifest, version)
    for group in operation.replacements:
        fragment, new = fragments.get(group.fragment_id), group.new_file
        _check_files(draft.manifest, [table_pb2.DataFragment(files=[new])])
        field_ids = {i for i in new.fields if i >= 0}
        _check_fields(draft.manifest, field_ids, f"new file of fragment {fragment.id}")
        same = [f for f in fragment.files if {i for i in f.fields if i >= 0} == field_ids]
        if same:
            same[0].CopyFrom(new)
        elif field_ids.isdisjoint(i for f in fragment.files for i in f.fields):
            fragment.files.add().CopyFrom(new)
        else:
            raise InvalidInputError(
                "no data file has exactly these fields",
                where=f"fragment {group.fragment_id}",
                expected=" or ".join(str(list(f.fields)) for f in fragment.files),
                found=list(new.fields),
            )
        _take_over(fragment, field_ids)
        coverage.withdraw(draft.segments, [group.fragment_id], coverage.family(field_ids, draft.manifest.fields))
        if fragments.is_stable:
            touch_rows(fragment, version)


def _add_overlays(draft: ManifestDraft, operation: transaction_pb2.Transaction.DataOverlay, version: int) -> None:
    fragments = FragmentList(draft.manifest, version)
    for group in operation.groups:
        fragment = fragments.get(group.fragment_id)
        for new in group.overlays:
            _check_overlay(draft.manifest, fragment, new)
            overlay = fragment.overlays.add()
            overlay.CopyFrom(new)
            overlay.committed_version = version
            if fragments.is_stable:
                touch_some_rows(fragment, version, roaring_bytes(overlaid_offsets(new)))


def _check_overlay(
    manifest: table_pb2.Manifest, fragment: table_pb2.DataFragment, overlay: table_pb2.DataOverlayFile
) -> None:
    """Reject an overlay that does not match its fragment's fields or rows."""
    where = f"overlay of fragment {fragment.id}: {overlay.data_file.path}"
    _check_fields(manifest, (i for i in overlay.data_file.fields if i >= 0), where)
    if LEGACY in (_file_version(overlay.data_file), version_of_first([fragment])):
        raise UnsupportedError(
            "tables of version 0.1 do not support data overlays",
            where=where,
            remedy="call optimize.compact_files() first",
        )
    _check_files(manifest, [table_pb2.DataFragment(files=[overlay.data_file])])
    offsets = overlaid_offsets(overlay)
    if len(offsets) and offsets[-1] >= fragment.physical_rows:
        raise InvalidInputError(
            "an overlay has a row offset out of range",
            where=where,
            expected=f"< {fragment.physical_rows}",
            found=int(offsets[-1]),
        )


def _take_over(fragment: table_pb2.DataFragment, field_ids: Set[int]) -> None:
    """Remove the values of some fields from a fragment's overlays."""
    for place in reversed(range(len(fragment.overlays))):
        fields = fragment.overlays[place].data_file.fields
        fields[:] = [TOMBSTONE if i in field_ids else i for i in fields]
        if all(i == TOMBSTONE for i in fields):
            del fragment.overlays[place]


def _update_config(draft: ManifestDraft, operation: transaction_pb2.Transaction.UpdateConfig, version: int) -> None:
    apply_config(draft.manifest, operation)
    apply_field_metadata(draft.manifest, operation)


def _update_bases(draft: ManifestDraft, operation: transaction_pb2.Transaction.UpdateBases, version: int) -> None:
    _add_bases(draft.manifest, operation.new_bases)


def _restore(base: ManifestDraft, restored: ManifestDraft | None, version: int) -> ManifestDraft:
    if restored is None:
        raise InternalError("the Restore does not have a version to restore")
    draft = restored.copied()
    manifest = draft.manifest
    manifest.version = version
    manifest.ClearField("branch")
    if base.manifest.HasField("branch"):
        manifest.branch = base.manifest.branch
    fragments = FragmentList(manifest, version)
    if base.manifest.HasField("max_fragment_id"):
        fragments.note_id(base.manifest.max_fragment_id)
    manifest.next_row_id = max(manifest.next_row_id, base.manifest.next_row_id)
    if base.manifest.HasField("max_allocated_field_id"):
        manifest.max_allocated_field_id = base.manifest.max_allocated_field_id
        manifest.writer_feature_flags |= flags.KEPT_FIELD_IDS
    _finish(draft)
    return draft


_CHANGES: Mapping[str, Callable[[ManifestDraft, Any, int], None]] = {
    "append": _append,
    "delete": _delete,
    "overwrite": _overwrite,
    "update": _update,
    "merge": _merge,
    "project": _project,
    "rewrite": _rewrite,
    "reserve_fragments": _reserve,
    "create_index": _create_index,
    "data_replacement": _replace_data,
    "data_overlay": _add_overlays,
    "update_config": _update_config,
    "update_bases": _update_bases,
}


_ADDING = frozenset({"append", "create_index", "reserve_fragments", "update_config", "update_bases"})
"""Operations that keep the previous version's fragments. They may append new fragments."""


_OUTDATING = frozenset({"create_index", "data_replacement", "merge", "rewrite", "update"})
"""Operations after which segments that are older than an overlay must no longer cover the overlay's fragment."""


def _finish(draft: ManifestDraft, known: int = 0) -> None:
    """Remove index segments that are no longer needed, and set the feature flags.

    Args:
        draft: The new version.
        known: Number of leading fragments for which the flags are already set.
    """
    manifest = draft.manifest
    fields = {f.id for f in manifest.fields}
    ids = FragmentList(manifest, manifest.version).ids
    draft.segments[:] = coverage.retain(draft.segments, fields, ids)
    if manifest.HasField("max_allocated_field_id"):
        manifest.max_allocated_field_id = max(manifest.max_allocated_field_id, *fields, 0)
    common = 0
    if known:
        common = manifest.reader_feature_flags & (flags.DELETION_FILES | flags.OVERLAYS)
    if any(f.HasField("deletion_file") for f in manifest.fragments[known:]):
        common |= flags.DELETION_FILES
    if any(f.overlays for f in manifest.fragments[known:]):
        common |= flags.OVERLAYS
    if manifest.base_paths:
        common |= flags.BASE_PATHS
    if any(s.covering_fields for s in draft.segments):
        common |= flags.COVERED_INDICES
    reader, writer = manifest.reader_feature_flags, manifest.writer_feature_flags
    manifest.reader_feature_flags = reader & flags.STICKY | common
    manifest.writer_feature_flags = writer & flags.STICKY | common | (flags.TABLE_CONFIG if manifest.config else 0)


def _check_files(manifest: table_pb2.Manifest, fragments: Iterable[table_pb2.DataFragment]) -> None:
    """Set the mixed-version flags if the version of a new data file differs from the table's file version.

    Mixing 0.1 files with files of other versions is rejected.
    """
    versions = {(f.file_major_version, f.file_minor_version) for fragment in fragments for f in fragment.files}
    if not versions:
        return
    present = version_of_first(manifest.fragments)
    texts = {version_text(version) for version in versions}
    if present is None and LEGACY in texts:
        present = manifest.data_format.version or LEGACY
    is_legacy = present == LEGACY
    if present is not None and any((text == LEGACY) != is_legacy for text in texts):
        raise UnsupportedError(
            "a table cannot mix data files of version 0.1 and 2.x",
            expected=present,
            found=", ".join(sorted(texts)),
            remedy="call optimize.compact_files() first" if is_legacy else None,
        )
    if not is_legacy and manifest.data_format.version in ("", LEGACY):  # written before manifests had this field
        manifest.data_format.version = present or max(texts)
    if not is_legacy and any(text != manifest.data_format.version for text in texts):
        manifest.reader_feature_flags |= flags.MIXED_VERSIONS
        manifest.writer_feature_flags |= flags.MIXED_VERSIONS


def _file_version(file: table_pb2.DataFile) -> str:
    return version_text((file.file_major_version, file.file_minor_version))


def _given_rows(fragment: table_pb2.DataFragment) -> int:
    row_ids = given_row_ids(fragment)
    return fragment.physical_rows if row_ids is None else len(row_ids)


def _add_bases(manifest: table_pb2.Manifest, bases: Sequence[table_pb2.BasePath]) -> None:
    for new_base in bases:
        base_paths = manifest.base_paths
        if new_base.path in {b.path for b in base_paths}:
            raise IncompatibleError("base path already exists", found=new_base.path)
        base = base_paths.add()
        base.CopyFrom(new_base)
        base.id = new_base.id or max((b.id for b in base_paths), default=0) + 1
        if sum(b.id == base.id for b in base_paths) > 1:
            raise IncompatibleError(f"another base path has id {base.id}", found=new_base.path)


def _check_fields(manifest: table_pb2.Manifest, field_ids: Iterable[int], where: str) -> None:
    present = {f.id for f in manifest.fields}
    missing = sorted(set(field_ids) - present)
    if missing:
        raise IncompatibleError(
            "the field does not exist in the table", where=where, found=", ".join(map(str, missing))
        )


def _refuse_tree(manifest: table_pb2.Manifest) -> None:
    unknown = UnknownFieldSet(manifest)
    if any(unknown[i].field_number == _FRAGMENT_TREE for i in range(len(unknown))):
        raise UnsupportedError(
            "the fragment list is stored as a tree, which is not supported",
            remedy="change the table with the software that wrote it",
        )
