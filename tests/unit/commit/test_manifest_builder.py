from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from unit.commit.samples import (
    NEW,
    OPERATIONS,
    data_file,
    fragment,
    index,
    replacement,
    rewrite,
    rewritten_column,
    schema,
)

from lance_duck.commit import (
    Append,
    Clone,
    CreateIndex,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
)
from lance_duck.commit.committer import new_transaction
from lance_duck.commit.creation import clone_manifest
from lance_duck.commit.index_coverage import bitmap_fragments
from lance_duck.commit.manifest_builder import build_manifest, first_manifest
from lance_duck.commit.manifest_draft import ManifestDraft
from lance_duck.errors import IncompatibleError, InvalidInputError, UnsupportedError
from lance_duck.rows import RowIdSequence, VersionSequence, read_row_ids, read_versions, roaring_bytes
from lance_duck.wire.flags import MIXED_VERSIONS
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.index import IndexMetadata
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.pb import table_pb2, transaction_pb2

BITMAP = {"index_details": {"type_url": "/lance.table.BitmapIndexDetails"}, "index_version": 0}
BTREE = {"index_details": {"type_url": "/lance.table.BTreeIndexDetails"}, "index_version": 1}


def table(*fragments: Fragment, stable: bool = False, indices: tuple[IndexMetadata, ...] = ()) -> ManifestDraft:
    """Version 1 of a table with columns a, b, c; by default of two fragments of ten rows."""
    created = fragments or (fragment(0), fragment(1))
    operation = new_transaction(0, Overwrite(schema(), created), None).overwrite
    draft = first_manifest(operation, "2.2", stable_row_ids=stable)
    draft.segments.extend(i.proto for i in indices)
    return draft


def after(
    base: ManifestDraft, operation: Operation, version: int = 2, restored: ManifestDraft | None = None
) -> ManifestDraft:
    before = base.manifest.SerializeToString(deterministic=True)
    draft = build_manifest(base, new_transaction(version - 1, operation, None), version, restored)
    assert base.manifest.SerializeToString(deterministic=True) == before
    assert draft.manifest.version == version
    return draft


def ids(draft: ManifestDraft) -> list[int]:
    return [f.id for f in draft.manifest.fragments]


def flags(draft: ManifestDraft) -> tuple[int, int]:
    return draft.manifest.reader_feature_flags, draft.manifest.writer_feature_flags


def paths(draft: ManifestDraft, fragment_id: int) -> list[str]:
    return [file.path for f in draft.manifest.fragments if f.id == fragment_id for file in f.files]


def row_ids(fragment: table_pb2.DataFragment) -> list[int]:
    sequence = read_row_ids(fragment.inline_row_ids, "here")
    return sequence.slice(0, len(sequence)).tolist()


def versions(data: bytes) -> list[int]:
    sequence = read_versions(data, "here")
    return sequence.slice(0, len(sequence)).tolist()


def coverage(draft: ManifestDraft) -> dict[str, list[int]]:
    return {s.name: found.tolist() for s in draft.segments if (found := bitmap_fragments(s)) is not None}


def test_fragments_of_a_new_table_are_numbered() -> None:
    draft = table(replace(NEW, id=9), NEW)
    assert (ids(draft), draft.manifest.max_fragment_id, flags(draft)) == ([0, 1], 1, (0, 0))
    assert [f.name for f in draft.manifest.fields] == ["a", "b", "c"]
    assert (draft.manifest.data_format.file_format, draft.manifest.data_format.version) == ("lance", "2.2")


def test_a_new_table_may_be_empty() -> None:
    draft = first_manifest(new_transaction(0, Overwrite(schema(), []), None).overwrite, "2.1", stable_row_ids=True)
    assert not draft.manifest.HasField("max_fragment_id")
    assert (draft.manifest.data_format.version, flags(draft)) == ("2.1", (2, 2))
    assert ids(after(draft, Append([NEW]))) == [0]


def test_appended_fragments_get_the_next_ids() -> None:
    draft = after(after(table(), Delete([], [1])), Append([NEW, NEW]), 3)
    assert (ids(draft), draft.manifest.max_fragment_id) == ([0, 2, 3], 3)


def test_appended_rows_get_the_next_row_ids_and_the_version() -> None:
    draft = after(table(stable=True), Append([NEW]))
    new = draft.manifest.fragments[2]
    assert row_ids(new) == list(range(20, 30))
    assert versions(new.inline_created_at_versions) == versions(new.inline_last_updated_at_versions) == [2] * 10
    assert draft.manifest.next_row_id == 30


def test_tables_without_stable_row_ids_discard_row_ids() -> None:
    draft = after(table(), Append([replace(NEW, row_ids=RowIdSequence.range_of(5, 10).to_bytes())]))
    assert draft.manifest.fragments[2].WhichOneof("row_id_sequence") is None
    assert draft.manifest.next_row_id == 0


def test_moved_rows_keep_their_ids_and_new_rows_get_new_ids() -> None:
    moved = RowIdSequence.from_ids(np.array([3, 8])).to_bytes()
    created = VersionSequence.from_versions(np.array([1, 1])).to_bytes()
    update = Update(
        updated_fragments=[fragment(0, deleted=2, row_ids=RowIdSequence.range_of(0, 10).to_bytes())],
        new_fragments=[replace(NEW, physical_rows=3, row_ids=moved, created_at=created)],
    )
    draft = after(table(stable=True), update)
    new = draft.manifest.fragments[2]
    assert (row_ids(new), draft.manifest.next_row_id) == ([3, 8, 20], 21)
    assert versions(new.inline_created_at_versions) == [1, 1, 2]
    assert versions(new.inline_last_updated_at_versions) == [2, 2, 2]


def test_more_row_ids_than_rows_are_rejected() -> None:
    given = replace(NEW, physical_rows=1, row_ids=RowIdSequence.range_of(0, 2).to_bytes())
    with pytest.raises(InvalidInputError, match="there are more row ids than rows: expected 1, found 2"):
        after(table(stable=True), Append([given]))


def test_row_ids_beyond_64_bits_are_rejected() -> None:
    base = table(stable=True)
    base.manifest.next_row_id = (1 << 64) - NEW.physical_rows
    with pytest.raises(InvalidInputError, match="the table has used all row ids"):
        after(base, Append([NEW]))


def test_deletion_files_set_the_feature_flag() -> None:
    draft = after(table(), Delete([fragment(0, deleted=3)], [1]))
    assert (ids(draft), flags(draft)) == ([0], (1, 1))
    assert draft.manifest.fragments[0].deletion_file.num_deleted_rows == 3
    assert flags(after(draft, Delete([], [0]), 3)) == (0, 0)


def test_deleting_a_missing_fragment_is_a_conflict() -> None:
    with pytest.raises(IncompatibleError, match="fragment 5 is not in the table"):
        after(table(), Delete([], [5]))


def test_unknown_fragment_fields_are_preserved() -> None:
    base = table()
    unknown = bytes([12 << 3 | 2, 1, 7])
    carried = table_pb2.DataFragment.FromString(base.manifest.fragments[0].SerializeToString() + unknown)
    base.manifest.fragments[0].CopyFrom(carried)
    draft = after(base, Delete([fragment(0, deleted=3)], []))
    assert unknown in draft.manifest.fragments[0].SerializeToString()
    assert draft.manifest.fragments[0].deletion_file.num_deleted_rows == 3


def test_row_ids_are_kept_if_a_change_omits_them() -> None:
    draft = after(table(stable=True), Delete([fragment(0, deleted=3)], []))
    assert row_ids(draft.manifest.fragments[0]) == list(range(10))


def test_an_overwrite_keeps_settings_and_continues_the_numbering() -> None:
    base = after(table(stable=True, indices=(index("i", 0),)), UpdateConfig(UpdateMap({"k": "v"})))
    base.manifest.table_metadata["t"] = "m"
    draft = after(base, Overwrite(schema("b"), [NEW], {"n": "w"}), 3)
    assert (ids(draft), [f.name for f in draft.manifest.fields], draft.segments) == ([2], ["b"], [])
    assert row_ids(draft.manifest.fragments[0]) == list(range(20, 30))
    assert dict(draft.manifest.config) == {"k": "v", "n": "w"}
    assert (dict(draft.manifest.table_metadata), flags(draft)) == ({"t": "m"}, (2, 10))


def test_an_overwrite_uses_the_version_of_its_files() -> None:
    older = replace(NEW, files=(replace(NEW.files[0], file_version=(2, 1)),))
    assert after(table(), Overwrite(schema(), [older])).manifest.data_format.version == "2.1"
    assert after(table(), Overwrite(schema(), [])).manifest.data_format.version == "2.2"


def test_an_overwrite_with_deleted_rows_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="deletion file"):
        after(table(), Overwrite(schema(), [fragment(0, deleted=1)]))


def test_mixed_file_versions_set_a_permanent_flag() -> None:
    older = replace(NEW, files=(replace(NEW.files[0], file_version=(2, 0)),))
    draft = after(table(), Append([older]))
    assert (flags(draft), draft.manifest.data_format.version) == ((256, 256), "2.2")
    assert flags(after(draft, Delete([], [2]), 3)) == (256, 256)


def test_legacy_files_are_not_mixed_with_other_versions() -> None:
    old = replace(NEW, files=(replace(NEW.files[0], file_version=(0, 2)),))
    with pytest.raises(UnsupportedError, match=r"expected 2\.2, found 0\.1"):
        after(table(), Append([old]))


def test_a_new_fragment_requires_its_row_count() -> None:
    with pytest.raises(InvalidInputError, match="the new fragment does not have rows"):
        after(table(), Append([replace(NEW, physical_rows=0)]))


def test_in_place_changes_reduce_index_coverage() -> None:
    indices = (
        index("a", 0, covers=(0, 1)),
        index("b", 1, covers=(0, 1), number=2),
        index("u", 1, covers=None, number=3),
    )
    for operation in (OPERATIONS["UpdateCols(b) f0"], replacement(0)):
        base = table(fragment(0, *rewritten_column(0).files), fragment(1), indices=indices)
        draft = after(base, operation)
        assert coverage(draft) == {"a": [0, 1], "b": [1]}
        assert not draft.segments[2].fragment_bitmap


def test_in_place_changes_reduce_coverage_of_parent_and_child_indexes() -> None:
    base = table(indices=(index("parent", 0), index("child", 2, number=2), index("other", 3, number=3)))
    for field, parent in ((1, 0), (2, 1)):
        base.manifest.fields[field].parent_id = parent
    base.manifest.fields.add(id=3, parent_id=-1, name="d", logical_type="int64")
    assert coverage(after(base, OPERATIONS["UpdateCols(b) f0"])) == {"parent": [], "child": [], "other": [0]}


def test_rows_changed_in_place_get_the_new_version() -> None:
    base = table(stable=True)
    some = Update(
        updated_fragments=[rewritten_column(0)],
        fields_modified=[1],
        update_mode="rewrite_columns",
        updated_fragment_offsets={0: roaring_bytes(np.array([2, 9], np.uint32))},
    )
    changed = after(base, some).manifest.fragments[0]
    assert versions(changed.inline_last_updated_at_versions) == [1, 1, 2, 1, 1, 1, 1, 1, 1, 2]
    assert versions(changed.inline_created_at_versions) == [1] * 10
    whole = after(base, replace(some, updated_fragment_offsets={})).manifest.fragments[0]
    assert versions(whole.inline_last_updated_at_versions) == [2] * 10


def test_indexes_by_row_id_cover_fragments_of_moved_rows() -> None:
    indices = (
        index("bitmap a", 0, **BITMAP),
        index("bitmap b", 1, number=2, **BITMAP),
        index("btree", 0, number=3, **BTREE),
        index("elsewhere", 0, covers=(1,), number=4, **BITMAP),
    )
    update = Update(
        updated_fragments=[fragment(0, deleted=10)],
        new_fragments=[replace(NEW, row_ids=RowIdSequence.range_of(0, 10).to_bytes())],
        fields_for_preserving_frag_bitmap=[1],
    )
    draft = after(table(stable=True, indices=indices), update)
    assert coverage(draft) == {"bitmap a": [0, 2], "bitmap b": [0], "btree": [0], "elsewhere": [1]}


def test_a_merge_keeps_row_ids_and_marks_changed_fragments() -> None:
    indices = (index("b", 1, covers=(0, 1)),)
    with_new = fragment(1, data_file("1.lance", 0, 1, 2), data_file("d.lance", 3))
    draft = after(table(stable=True, indices=indices), Merge([rewritten_column(0), with_new], schema()))
    assert (ids(draft), coverage(draft)) == ([0, 1], {"b": [1]})
    assert [row_ids(f)[0] for f in draft.manifest.fragments] == [0, 10]
    assert [versions(f.inline_last_updated_at_versions)[0] for f in draft.manifest.fragments] == [2, 2]
    unchanged = after(table(stable=True), Merge([fragment(0), with_new], schema()))
    assert [versions(f.inline_last_updated_at_versions)[0] for f in unchanged.manifest.fragments] == [1, 2]


def test_a_merge_with_a_duplicate_fragment_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="duplicate fragment id"):
        after(table(), Merge([fragment(0), fragment(0)], schema()))


def test_a_projection_drops_unused_files_and_indexes() -> None:
    base = table(rewritten_column(0), indices=(index("a", 0), index("b", 1, number=2)))
    draft = after(base, Project(schema("ac")))
    assert ([f.id for f in draft.manifest.fields], paths(draft, 0), list(coverage(draft))) == (
        [0, 2],
        ["0.lance"],
        ["a"],
    )


def test_rewritten_fragments_are_ordered_by_id() -> None:
    base = table(*[fragment(i) for i in range(5)])
    groups = [
        RewriteGroup([fragment(1), fragment(2)], [replace(NEW, id=9)]),
        RewriteGroup([fragment(0), fragment(4)], [NEW, NEW]),
    ]
    draft = after(base, Rewrite(groups))
    assert (ids(draft), draft.manifest.max_fragment_id) == ([3, 9, 10, 11], 11)


def test_reserved_fragment_ids_are_not_reused() -> None:
    draft = after(table(), ReserveFragments(3))
    assert draft.manifest.max_fragment_id == 4
    assert ids(after(draft, Append([NEW]), 3)) == [0, 1, 5]


def test_indices_lose_fragments_that_were_rewritten_without_them() -> None:
    base = table(indices=(index("x", 0, covers=(0, 1), **BITMAP),))
    assert coverage(after(base, rewrite(0))) == {"x": [1]}


def test_indexes_follow_a_rewrite_with_new_segments_or_stable_row_ids() -> None:
    old = index("x", 0, covers=(0, 1), **BTREE)
    new = RewrittenIndex(old.uuid, index("y", 0, number=7).uuid, new_index_version=1, new_index_files=(("f", 3),))
    draft = after(table(indices=(old,)), replace(rewrite(0), rewritten_indices=(new,)))
    assert (coverage(draft), draft.segments[0].uuid.uuid[-1], draft.segments[0].files[0].path) == (
        {"x": [1, 7]},
        7,
        "f",
    )
    kept = (index("i", 0, **BITMAP), index("j", 0, number=2, **BTREE))
    group = RewriteGroup([fragment(0)], [replace(NEW, id=7, row_ids=RowIdSequence.range_of(0, 10).to_bytes())])
    assert coverage(after(table(stable=True, indices=kept), Rewrite([group]))) == {"i": [7], "j": []}


def test_an_index_rewritten_as_itself_changes_only_its_fragments() -> None:
    old = index("x", 0, covers=(0, 1), base_id=3, **BTREE)
    same = RewrittenIndex(old.uuid, old.uuid)
    draft = after(table(indices=(old,)), replace(rewrite(0), rewritten_indices=(same,)))
    assert coverage(draft) == {"x": [1, 7]}
    assert (draft.segments[0].base_id, draft.segments[0].index_details) == (3, old.proto.index_details)


@pytest.mark.parametrize(("reuses", "dated"), [(False, 1), (True, 5)])
def test_a_rewritten_index_belongs_to_the_table_and_follows_all_rewrites(reuses: bool, dated: int) -> None:
    old = index("x", 0, covers=(0, 1), base_id=3, **BTREE)
    reuse = (index("__lance_frag_reuse", number=9, covers=None),) if reuses else ()
    new = RewrittenIndex(old.uuid, index("y", 0, number=7).uuid)
    operation = replace(rewrite(0), rewritten_indices=(new,))
    draft = build_manifest(table(indices=(old, *reuse)), new_transaction(5, operation, None), 6)
    assert not draft.segments[0].HasField("base_id")
    assert draft.segments[0].dataset_version == dated


def test_rewriting_partially_covered_fragments_is_rejected() -> None:
    old = index("x", 0, covers=(0,))
    new = RewrittenIndex(old.uuid, index("y", 0, number=7).uuid)
    both = Rewrite([RewriteGroup([fragment(0), fragment(1)], [NEW])], (new,))
    with pytest.raises(InvalidInputError, match=r"expected all or none, found \[0\] of \[0, 1\]"):
        after(table(indices=(old,)), both)


def test_a_rewrite_with_stable_row_ids_requires_row_ids() -> None:
    with pytest.raises(InvalidInputError, match="does not have row ids"):
        after(table(stable=True), rewrite(0))


def test_a_data_replacement_replaces_or_adds_a_file() -> None:
    base = table(fragment(0, *rewritten_column(0).files), fragment(1, data_file("1.lance", 0, 2)))
    assert paths(after(base, replacement(0)), 0) == ["0.lance", "r.lance"]
    assert paths(after(base, replacement(1)), 1) == ["1.lance", "r.lance"]
    with pytest.raises(InvalidInputError, match="no data file has exactly these fields"):
        after(table(), replacement(0))


@pytest.mark.parametrize("operation", [replacement(0), OPERATIONS["CreateIndex b"]], ids=["file", "index"])
def test_changes_of_a_dropped_field_conflict(operation: Operation) -> None:
    base = after(table(fragment(0, *rewritten_column(0).files)), Project(schema("ac")))
    with pytest.raises(IncompatibleError, match="the field does not exist in the table: found 1"):
        after(base, operation, 3)


def test_index_segments_are_added_and_removed() -> None:
    first, second = index("x", 0), index("y", 1, number=2)
    draft = after(after(table(), CreateIndex([first, second])), CreateIndex([index("x", 0, number=3)], [first]), 3)
    assert [s.name for s in draft.segments] == ["y", "x"]


def test_only_one_empty_index_segment_is_kept() -> None:
    segments = (index("x", 0), index("x", 0, covers=(1,), number=2), index("y", 0, covers=(), number=3))
    draft = after(table(indices=segments), Delete([], [0]))
    assert [s.uuid.uuid[-1] for s in draft.segments] == [2, 3]
    draft = after(draft, Delete([], [1]), 3)
    assert [s.uuid.uuid[-1] for s in draft.segments] == [2, 3]


def test_settings_and_metadata_are_set_removed_and_replaced() -> None:
    first = UpdateConfig(
        UpdateMap({"a": "1", "b": "2"}), UpdateMap({"t": "m"}), UpdateMap({"s": "m"}), {0: UpdateMap({"f": "m"})}
    )
    draft = after(table(), first)
    assert (dict(draft.manifest.config), flags(draft)) == ({"a": "1", "b": "2"}, (0, 8))
    assert dict(draft.manifest.table_metadata) == {"t": "m"}
    assert dict(draft.manifest.schema_metadata) == {"s": b"m"}
    assert dict(draft.manifest.fields[0].metadata) == {"f": b"m"}
    second = UpdateConfig(UpdateMap({"a": None, "c": "3"}), UpdateMap({"u": "n"}, replace=True))
    draft = after(draft, second, 3)
    assert (dict(draft.manifest.config), dict(draft.manifest.table_metadata)) == ({"b": "2", "c": "3"}, {"u": "n"})
    assert dict(draft.manifest.schema_metadata) == {"s": b"m"}


def test_primary_key_metadata_is_applied_to_the_field() -> None:
    base = table()
    base.manifest.fields[1].nullable = False
    key = "lance-schema:unenforced-primary-key"
    draft = after(base, UpdateConfig(field_metadata_updates={1: UpdateMap({key: "true"})}))
    assert [f.unenforced_primary_key for f in draft.manifest.fields] == [False, True, False]
    draft = after(draft, UpdateConfig(field_metadata_updates={1: UpdateMap({key: None})}), 3)
    assert not any(f.unenforced_primary_key for f in draft.manifest.fields)
    with pytest.raises(IncompatibleError, match="no field with id 9"):
        after(base, UpdateConfig(field_metadata_updates={9: UpdateMap({})}))


def test_base_paths_get_ids_and_set_their_flag() -> None:
    draft = after(table(), UpdateBases([BasePath(0, "n", False, "/x"), BasePath(0, None, True, "/y")]))
    assert [(b.id, b.path, b.is_dataset_root) for b in draft.manifest.base_paths] == [(1, "/x", False), (2, "/y", True)]
    assert flags(draft) == (16, 16)
    with pytest.raises(IncompatibleError, match="found /x"):
        after(draft, UpdateBases([BasePath(0, None, False, "/x")]), 3)


def test_a_restored_version_continues_the_numbering() -> None:
    first = table(stable=True, indices=(index("x", 0),))
    last = after(after(first, Append([NEW])), UpdateConfig(UpdateMap({"k": "v"})), 3)
    draft = after(last, OPERATIONS["Restore"], 4, restored=first)
    assert (ids(draft), draft.manifest.max_fragment_id, draft.manifest.next_row_id) == ([0, 1], 2, 30)
    assert (dict(draft.manifest.config), flags(draft), list(coverage(draft))) == ({}, (2, 2), ["x"])


def test_unknown_manifest_fields_are_preserved() -> None:
    base = table()
    unknown = bytes([0xCA, 0x01, 1, 7])  # field 25
    base.manifest.MergeFromString(unknown)
    base.manifest.tag = "label"
    draft = after(base, Append([NEW]))
    assert unknown in draft.manifest.SerializeToString()
    assert not draft.manifest.tag


def test_fragment_trees_are_rejected() -> None:
    base = table()
    base.manifest.MergeFromString(bytes([0xB2, 0x01, 1, 7]))
    with pytest.raises(UnsupportedError, match="tree"):
        after(base, Append([NEW]))


def test_the_highest_field_id_is_updated_if_present() -> None:
    base = table()
    base.manifest.max_allocated_field_id = 2
    base.manifest.writer_feature_flags |= 32768
    assert after(base, Project(schema("ab"))).manifest.max_allocated_field_id == 2
    base.manifest.fields.add(id=7, parent_id=-1, name="z", logical_type="int64")
    draft = after(base, Append([NEW]))
    assert (draft.manifest.max_allocated_field_id, flags(draft)) == (7, (0, 32768))


def test_a_restored_version_notes_the_highest_field_id_with_its_flag() -> None:
    base = table()
    base.manifest.max_allocated_field_id = 9
    base.manifest.writer_feature_flags |= 32768
    restored = after(base, OPERATIONS["Restore"], 3, restored=table())
    assert (restored.manifest.max_allocated_field_id, flags(restored)) == (9, (0, 32768))


@pytest.mark.parametrize("arm", [None, "update_mem_wal_state", "clone"])
def test_operations_without_a_manifest_change_are_rejected(arm: Any) -> None:
    transaction = transaction_pb2.Transaction(**({arm: {}} if arm else {}))
    with pytest.raises(UnsupportedError, match="cannot be committed"):
        build_manifest(table(), transaction, 2)


def test_a_shallow_clone_finds_its_files_at_the_source() -> None:
    source = after(table(indices=(index("x", 0),)), Delete([fragment(0, deleted=1)], []))
    draft = clone_manifest(source, Clone(True, None, 2, "/source", "branch"), "/source")
    first = draft.manifest.fragments[0]
    assert [(b.id, b.is_dataset_root, b.path) for b in draft.manifest.base_paths] == [(0, True, "/source")]
    assert (first.files[0].base_id, first.deletion_file.base_id, draft.segments[0].base_id) == (0, 0, 0)
    assert first.files[0].HasField("base_id")
    assert (draft.manifest.branch, draft.manifest.version, flags(draft)) == ("branch", 2, (17, 17))
    again = clone_manifest(after(draft, Append([NEW]), 3), Clone(True, None, 3, "/clone"), "/clone")
    assert [f.files[0].base_id for f in again.manifest.fragments] == [0, 0, 1]
    assert not again.manifest.HasField("branch")


def test_a_deep_clone_references_no_source_files() -> None:
    source = clone_manifest(table(indices=(index("x", 0),)), Clone(True, None, 2, "/source"), "/source")
    draft = clone_manifest(source, Clone(False, None, 2, "/clone"), "/clone")
    assert not draft.manifest.base_paths
    assert not any(f.files[0].HasField("base_id") for f in draft.manifest.fragments)
    assert (flags(draft), draft.segments[0].HasField("base_id")) == ((0, 0), False)


@pytest.mark.parametrize("mixed_before", [False, True])
def test_rewriting_the_last_2_3_file_sets_the_version_to_2_2(mixed_before: bool) -> None:
    old = [fragment(i, replace(data_file(f"{i}.lance", 0, 1, 2), file_version=(2, 3))) for i in range(2)]
    base = first_manifest(new_transaction(0, Overwrite(schema(), old), None).overwrite, "2.3", stable_row_ids=False)
    if mixed_before:
        base.manifest.reader_feature_flags = base.manifest.writer_feature_flags = MIXED_VERSIONS
    new = [fragment(i + 7, data_file(f"new{i}.lance", 0, 1, 2)) for i in range(2)]

    one = build_manifest(base, new_transaction(1, Rewrite([RewriteGroup(old[:1], new[:1])]), None), 2)
    assert one.manifest.data_format.version == "2.3"
    assert one.manifest.reader_feature_flags == one.manifest.writer_feature_flags == MIXED_VERSIONS
    groups = [RewriteGroup([o], [n]) for o, n in zip(old, new, strict=True)]
    both = build_manifest(base, new_transaction(1, Rewrite(groups), None), 2).manifest
    assert both.data_format.version == "2.2"
    expected = MIXED_VERSIONS if mixed_before else 0
    assert both.reader_feature_flags == both.writer_feature_flags == expected
