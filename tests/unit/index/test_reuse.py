"""The fragment reuse index: followed, extended, trimmed, and refused when it contradicts itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from unit.index.conftest import Table
from unit.index.plain import PlainKind, built, indexed

import lance_duck as ld
from lance_duck.commit import commit
from lance_duck.commit.operations import CreateIndex
from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError
from lance_duck.index.catalog import catalog
from lance_duck.index.reuse import Reuse, ReuseVersion, reuse_of
from lance_duck.index.reuse_write import needed_versions
from lance_duck.rows import roaring_bytes
from lance_duck.rows.address_map import AddressMap, MovedGroup
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import treemap
from lance_duck.snapshot import Snapshot
from lance_duck.wire.index import FRAGMENT_REUSE, index_from_proto, index_to_proto
from lance_duck.wire.pb import index_pb2, table_pb2

Details = index_pb2.FragmentReuseIndexDetails
Break = Callable[[Details.Group], Any]


def rows(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array([fragment << 32 | offset for fragment, offset in pairs], np.uint64)


def version(number: int, old: int, first: list[int], length: list[int], new: int) -> ReuseVersion:
    """Return a reuse version that moves some runs of fragment `old` to fragment `new`."""
    starts = rows(*((old, offset) for offset in first))
    group = MovedGroup((old,), ((new, sum(length)),), starts, np.array(length))
    message = Details.Group(old_fragments=[Details.FragmentDigest(id=old, physical_rows=10)])
    return ReuseVersion(number, AddressMap([group]), Details.Version(dataset_version=number, groups=[message]))


REUSE = Reuse((version(3, 0, [0, 5], [2, 5], 10), version(5, 10, [1], [6], 20)))


def test_row_addresses_are_remapped_through_every_version() -> None:
    found, lives = REUSE.follow(rows((0, 0), (0, 1), (0, 5), (0, 9), (0, 2), (10, 3), (20, 4), (7, 1)))
    assert lives.tolist() == [False, True, True, True, False, True, True, True]
    assert found[lives].tolist() == rows((20, 0), (20, 1), (20, 5), (20, 2), (20, 4), (7, 1)).tolist()


def test_row_sets_are_remapped_like_their_rows() -> None:
    asked = RowSet.of_ranges([(0, 0, 10), (7, 3, 5)])
    assert REUSE.follow_rows(asked) == RowSet.of_ranges([(20, 0, 6), (7, 3, 5)])
    untouched = RowSet.of_ranges([(7, 3, 5)])
    assert REUSE.follow_rows(untouched) is untouched


def test_coverage_is_remapped() -> None:
    assert REUSE.coverage(np.array([0, 7], np.uint32)).tolist() == [7, 20]
    assert REUSE.coverage(np.array([7, 20], np.uint32)).tolist() == [7, 20]


@pytest.mark.parametrize(
    ("built_on", "covers", "needed"),
    [
        (2, [0], [3, 5]),
        (3, [20], [3, 5]),
        (4, [10], [5]),
        (5, [20], [5]),
        (6, [20], []),
        (6, [0], [3]),
        (2, [99], []),
        (2, [], []),
    ],
)
def test_a_reuse_version_is_kept_while_a_segment_needs_it(built_on: int, covers: list[int], needed: list[int]) -> None:
    segment = table_pb2.IndexMetadata(
        name="x_idx", dataset_version=built_on, fragment_bitmap=roaring_bytes(np.array(covers, np.uint32))
    )
    present = np.array([7, 20], np.uint32)
    assert [v.dataset_version for v in needed_versions(REUSE, [segment], present)] == needed


def entry(snapshot: Snapshot, details: Details, number: int = 0) -> Snapshot:
    """The version with a fragment reuse index."""
    parts = ("/lance.table.FragmentReuseIndexDetails", details.SerializeToString())
    uuid = snapshot.indices[0].uuid.__class__(int=7)
    proto = index_to_proto(uuid, FRAGMENT_REUSE, 0, snapshot.version, b"", parts, number, ())
    proto.ClearField("fields")
    return commit(snapshot, CreateIndex([index_from_proto(proto, "test")]))


def sound() -> Details:
    digest = Details.FragmentDigest
    group = Details.Group(
        changed_row_addrs=treemap(RowSet.of_ranges([(90, 0, 10)])),
        old_fragments=[digest(id=90, physical_rows=10)],
        new_fragments=[digest(id=0, physical_rows=10)],
    )
    return Details(inline=Details.InlineContent(legacy_versions=[Details.Version(dataset_version=1, groups=[group])]))


BROKEN: list[tuple[str, Callable[[Details], Any]]] = [
    ("no content", lambda d: d.ClearField("inline")),
    ("rows", lambda d: setattr(_group(d).new_fragments[0], "physical_rows", 9)),
    ("many rows", lambda d: setattr(_group(d).new_fragments[0], "physical_rows", 2**60)),
    ("fragment", lambda d: setattr(_group(d).old_fragments[0], "id", 91)),
    ("large id", lambda d: setattr(_group(d).old_fragments[0], "id", 2**40)),
    ("cut", lambda d: setattr(_group(d), "changed_row_addrs", _group(d).changed_row_addrs[:-3])),
    ("twice", lambda d: d.inline.legacy_versions[0].groups.add().CopyFrom(_group(d))),
    ("no file", lambda d: d.external.CopyFrom(table_pb2.ExternalFile(path="details.binpb", size=10))),
    ("elsewhere", lambda d: d.external.CopyFrom(table_pb2.ExternalFile(path="../../x", size=10))),
]


def _group(details: Details) -> Details.Group:
    return details.inline.legacy_versions[0].groups[0]


@pytest.mark.parametrize(("name", "damage"), BROKEN, ids=[name for name, _ in BROKEN])
def test_a_broken_reuse_index_is_rejected_and_rows_are_scanned(
    name: str, damage: Callable[[Details], Any], table: Table, kind: PlainKind
) -> None:
    details = sound()
    damage(details)
    snapshot = table()
    snapshot = entry(indexed(snapshot, built(snapshot, kind)), details)
    with pytest.raises(LanceDuckError):
        reuse_of(snapshot)
    assert [len(i.segments) for i in catalog(snapshot)] == [0]
    dataset = ld.dataset(snapshot.uri)
    assert dataset.to_table(filter="x = 3").num_rows == 1
    dataset.insert(dataset.to_table(filter="x = 3"))
    assert ld.dataset(snapshot.uri).to_table(filter="x = 3").num_rows == 2


def test_a_reuse_index_of_other_fragments_changes_nothing(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = entry(indexed(snapshot, built(snapshot, kind)), sound())
    reuse = reuse_of(snapshot)
    assert reuse is not None
    assert reuse_of(snapshot) is reuse
    assert [i.fragments.tolist() for i in catalog(snapshot)] == [[0, 1, 2, 3]]


def test_a_newer_reuse_index_version_is_rejected(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = entry(indexed(snapshot, built(snapshot, kind)), sound(), 1)
    with pytest.raises(UnsupportedError, match="version of the fragment reuse index"):
        reuse_of(snapshot)


def test_details_that_are_not_protobuf_are_corrupt(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = entry(indexed(snapshot, built(snapshot, kind)), sound())
    snapshot.indices[-1].proto.index_details.value = b"\xff\xff"
    broken = index_from_proto(snapshot.indices[-1].proto, "test")
    snapshot.manifest.__dict__["indices"] = (*snapshot.indices[:-1], broken)
    with pytest.raises(CorruptError, match="not a protobuf message"):
        reuse_of(snapshot)
