from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from unit.index.conftest import Table
from unit.index.plain import PlainKind, built, changed, indexed

import lance_duck as ld
from lance_duck.errors import IndexWarning, UnsupportedError
from lance_duck.index import registry
from lance_duck.index.catalog import catalog, field_path
from lance_duck.index.query import Between, Null
from lance_duck.rows import roaring_bytes
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.wire.index import IndexMetadata, index_from_proto
from lance_duck.wire.pb import table_pb2
from lance_duck.wire.schema import Field, Schema


def bitmap(*ids: int) -> bytes:
    return roaring_bytes(np.array(ids, np.uint32))


def listing(snapshot: Snapshot, *segments: IndexMetadata) -> Snapshot:
    """Return the version with a manifest that lists the given segments."""
    fresh = open_snapshot(snapshot.uri)
    fresh.manifest.__dict__["indices"] = segments
    return fresh


@pytest.mark.parametrize(
    "type_url",
    ["/test.room.PlainIndexDetails", "/other.pb.PlainIndexDetails", "/x.plainindexdetails", "PlainIndexDetails"],
)
def test_a_kind_is_found_by_its_details_type(type_url: str, kind: PlainKind) -> None:
    assert registry.kind_of(type_url) is kind


@pytest.mark.parametrize("type_url", ["", "/", "/test.room.PlainIndexDetails2", "/test.room.OtherIndexDetails"])
def test_unknown_details_have_no_kind(type_url: str, kind: PlainKind) -> None:
    assert registry.kind_of(type_url) is None


@pytest.mark.parametrize("name", ["Plain", "PLAIN", "pla_in"])
def test_a_kind_is_found_by_its_name(name: str, kind: PlainKind) -> None:
    assert registry.kind_named(name) is kind


def test_the_registry_agrees_with_each_kind() -> None:
    kinds = [(listed, listed.load()) for listed in registry.KINDS]
    assert [(listed.name, listed.type_url) for listed, _ in kinds] == [(kind.name, kind.type_url) for _, kind in kinds]


def test_an_unknown_kind_is_rejected_by_name(kind: PlainKind) -> None:
    with pytest.raises(UnsupportedError, match=r"PLAIN, found 'FANCY'"):
        registry.kind_named("FANCY")


def test_a_table_without_indexes_has_an_empty_catalog(table: Table) -> None:
    found = catalog(table())
    assert len(found) == 0
    assert found.over("x") == ()


def test_segments_with_one_name_form_one_index(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind, fragments=[0, 2]), built(snapshot, kind, fragments=[1]))
    (index,) = catalog(snapshot).over("x")
    assert (index.name, index.path, index.kind) == ("x_idx", "x", kind)
    assert [s.fragments.tolist() for s in index.segments] == [[0, 2], [1]]
    assert index.fragments.tolist() == [0, 1, 2]
    assert index.segments[0].type == pa.int64()
    assert index.answers(Null())
    assert not index.answers(Between())
    assert catalog(snapshot) is catalog(snapshot)
    assert catalog(snapshot).named("x_idx") == (index,)
    assert catalog(snapshot).over("y") == ()
    assert catalog(snapshot).over("no such column") == ()


def test_missing_fragments_are_not_covered(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    ld.dataset(snapshot.uri).delete("y >= 10 AND y < 20")
    (index,) = catalog(open_snapshot(snapshot.uri)).over("x")
    assert index.fragments.tolist() == [0, 2, 3]


def test_overlapping_segments_do_not_share_fragments(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    segments = built(snapshot, kind, fragments=[0, 1]), built(snapshot, kind, fragments=[1, 2])
    (index,) = catalog(indexed(snapshot, *segments)).over("x")
    assert [s.fragments.tolist() for s in index.segments] == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"index_details": None}, "its entry does not store an index kind"),
        ({"details_type": "/other.NewIndexDetails"}, "index kind '/other.NewIndexDetails' is unknown"),
        ({"index_version": 2}, "version 2 of index kind Plain is not supported"),
        ({"index_version": 1000}, "version 1000 of index kind Plain is not supported"),
        ({"fragment_bitmap": None}, "its entry does not store the covered fragments"),
        ({"fragment_bitmap": b"broken"}, "the roaring bitmap is corrupt"),
        ({"fields": [0, 1]}, "it covers 2 fields"),
        ({"fields": []}, "it covers 0 fields"),
        ({"base_id": 7}, "its files are in base path 7, which the table does not have"),
    ],
)
def test_an_unusable_segment_is_ignored_with_a_reason(
    fields: dict[str, object], reason: str, table: Table, kind: PlainKind
) -> None:
    snapshot = table()
    whole = built(snapshot, kind, fragments=[1])
    broken = changed(built(snapshot, kind, fragments=[0]), **fields)
    found = catalog(listing(snapshot, broken, whole))
    (ignored,) = [i for index in found for i in index.ignored]
    assert reason in ignored.reason
    assert ignored.metadata.uuid == broken.uuid
    (index,) = found.over("x")
    assert index.fragments.tolist() == [1]
    assert len(found.ignored_over("x")) == (0 if "fields" in fields else 1)


def test_an_unreadable_index_section_warns_and_leaves_no_indexes(table: Table) -> None:
    snapshot = table()
    section = table_pb2.IndexSection(indices=[{"name": "odd", "uuid": {"uuid": b"short"}}])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(snapshot.manifest), "indices", property(lambda _: index_from_proto(section.indices[0], "m")))
        with pytest.warns(IndexWarning, match="uuid of index 'odd'"):
            assert len(catalog(snapshot)) == 0
        assert len(catalog(snapshot)) == 0


@pytest.mark.parametrize(
    ("writer", "is_used"),
    [
        (("lance", "14.0.2"), True),
        (("lance", "0.8.15"), True),
        (("lance", "1.0.0-beta.3"), True),
        (("lance", "0.8.14"), False),
        (("lance", "odd"), False),
        (("other", "0.1"), True),
        (None, False),
    ],
)
def test_fragment_lists_of_early_writers_are_not_trusted(
    writer: tuple[str, str] | None, is_used: bool, table: Table, kind: PlainKind
) -> None:
    snapshot = table()
    fresh = listing(snapshot, built(snapshot, kind))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(fresh.manifest), "writer", writer)
        assert bool(catalog(fresh).over("x")) == is_used


def test_an_index_on_an_unsupported_type_is_ignored(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    moved = changed(built(snapshot, kind), fields=[1])
    kind.supports = pa.types.is_string  # type: ignore[method-assign]
    (ignored,) = catalog(indexed(snapshot, moved)).ignored_over("y")
    assert ignored.reason == "index kind Plain does not support column 'y' of type int64"


def test_internal_entries_are_not_indexes(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    entry = changed(built(snapshot, kind), name="__lance_mem_wal")
    assert len(catalog(indexed(snapshot, entry))) == 0


def test_two_indexes_with_one_name_are_both_found(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    other = changed(built(snapshot, kind, "s"), name="x_idx")
    found = catalog(indexed(snapshot, built(snapshot, kind), other))
    assert [index.path for index in found.named("x_idx")] == ["x", "s"]


def test_an_index_on_a_struct_field_is_found_by_its_path(tmp_path: Path, kind: PlainKind) -> None:
    ld.write_dataset(pa.table({"x": [1], "c": pa.array([{"d": 1}])}), str(tmp_path / "t.lance"))
    snapshot = open_snapshot(str(tmp_path / "t.lance"))
    entry = changed(built(snapshot, kind), fields=[snapshot.schema.by_path("c.d").id])
    found = catalog(indexed(snapshot, entry))
    (index,) = found.over("c.d")
    assert (index.path, index.segments[0].field.name) == ("c.d", "d")
    assert found.over("c") == ()


def test_path_names_are_quoted_with_backticks_if_needed() -> None:
    below = Field(1, "e`f", 0, "int64", True), Field(2, "g", 0, "int64", True)
    schema = Schema((Field(0, "a.b", -1, "struct", True, children=below),))
    assert [field_path(schema, i) for i in (0, 1, 2, 3, -1)] == ["`a.b`", "`a.b`.`e``f`", "`a.b`.g", None, None]
    assert schema.by_path("`a.b`.`e``f`").id == 1


def test_a_field_inside_a_list_cannot_be_indexed(tmp_path: Path, kind: PlainKind) -> None:
    ld.write_dataset(pa.table({"x": [1], "l": [[1]]}), str(tmp_path / "t.lance"))
    snapshot = open_snapshot(str(tmp_path / "t.lance"))
    item = snapshot.schema.by_path("l").children[0].id
    entry = changed(built(snapshot, kind), fields=[item])
    (index,) = catalog(indexed(snapshot, entry))
    assert index.segments == ()
    assert "is nested in a list" in index.ignored[0].reason


def test_segments_identify_rows_by_kind_and_version(table: Table, kind: PlainKind) -> None:
    snapshot = table(stable=True)
    segments = [changed(built(snapshot, kind, fragments=[i]), index_version=i) for i in (0, 1)]
    (index,) = catalog(indexed(snapshot, *segments)).over("x")
    assert [s.by_row_id for s in index.segments] == [True, False]
