"""The fragment reuse index: new addresses of moved rows, for segments that still store their old addresses.

It is an entry of the index section with the name __lance_frag_reuse, without fields, and with version 0. Its details
contain one record (reuse version) per compaction, oldest first, or the byte range of a file that contains these
records:

    _indices/{uuid of the entry}/details.binpb      InlineContent

A reuse version lists groups of fragments that were rewritten together. Each group consists of the old fragments, the
new fragments, and a treemap with the old addresses of surviving rows. In ascending order of these addresses, the rows
fill the new fragments one after another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.rows.address_map import AddressMap, MovedGroup
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import treemap_runs
from lance_duck.snapshot import Snapshot
from lance_duck.wire import paths
from lance_duck.wire.index import FRAGMENT_REUSE, IndexMetadata
from lance_duck.wire.limits import FRAGMENT_IDS, ROW_OFFSETS
from lance_duck.wire.pb import index_pb2

Addresses = NDArray[np.uint64]
FragmentIds = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class ReuseVersion:
    """The record of one compaction.

    Attributes:
        dataset_version: Version of the table that was compacted.
        moved: Map from old to new addresses.
        proto: Protobuf message of the compaction.
    """

    dataset_version: int
    moved: AddressMap
    proto: index_pb2.FragmentReuseIndexDetails.Version


@dataclass(frozen=True, eq=False)
class Reuse:
    """All compactions that some segments may not have applied yet. Immutable.

    The maps do not change current addresses, because fragment ids are never reused.

    Attributes:
        versions: Compactions, oldest first.
    """

    versions: tuple[ReuseVersion, ...]

    def follow(self, addresses: Addresses) -> tuple[Addresses, NDArray[np.bool_]]:
        """Return the current addresses of rows, and whether each row survived.

        Args:
            addresses: Addresses stored in a segment, in any order. The segment may have been built on any version.
        """
        lives = np.ones(len(addresses), np.bool_)
        for version in self.versions:
            addresses, living = version.moved.follow(addresses)
            lives &= living
        return addresses, lives

    def follow_rows(self, rows: RowSet) -> RowSet:
        """Return the current addresses of a set of rows, without deleted rows.

        Raises:
            CorruptError: The set has more rows in the old fragments than these fragments ever had.
        """
        moving = {i for version in self.versions for i in version.moved.old.tolist()}
        old = rows.only(moving)
        if not old:
            return rows
        if len(old) > self._old_rows:
            raise CorruptError("wrong row count of rewritten fragments", expected=self._old_rows, found=len(old))
        addresses, lives = self.follow(old.rows())
        return RowSet.union((RowSet.of(addresses[lives]), rows - old))

    def coverage(self, fragment_ids: FragmentIds) -> FragmentIds:
        """Return the ascending ids of the fragments that now contain the rows of the given fragments.

        Fragments are rewritten in groups. If `fragment_ids` lacks some old fragments of a group, the group's new
        fragments are left out.
        """
        for version in self.versions:
            fragment_ids = version.moved.coverage(fragment_ids)
        return fragment_ids

    @cached_property
    def _old_rows(self) -> int:
        return sum(f.physical_rows for v in self.versions for g in v.proto.groups for f in g.old_fragments)

    @cached_property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return sum(v.moved.nbytes + v.proto.ByteSize() for v in self.versions)


def reuse_of(snapshot: Snapshot) -> Reuse | None:
    """Return the fragment reuse index of a version. Returns None if the version does not have one.

    Raises:
        CorruptError: The index cannot be read, so segments that store row addresses cannot be trusted.
        UnsupportedError: The index has an unknown version, so segments cannot be trusted either.
        StoreError, NotFoundError: The file of the index cannot be read.
    """
    entry = reuse_entry(snapshot.indices)
    if entry is None:
        return None
    return snapshot.shared((FRAGMENT_REUSE, entry.uuid, entry.base_id), lambda: _read(snapshot, entry))


def reuse_entry(indices: Iterable[IndexMetadata]) -> IndexMetadata | None:
    """Return the entry of the fragment reuse index. Returns None if it does not exist."""
    return next((i for i in indices if i.name == FRAGMENT_REUSE), None)


def _read(snapshot: Snapshot, entry: IndexMetadata) -> Reuse:
    where = f"fragment reuse index {entry.uuid}"
    if entry.version:
        raise UnsupportedError(
            "unknown version of the fragment reuse index", where=where, expected=0, found=entry.version
        )
    try:
        details = index_pb2.FragmentReuseIndexDetails.FromString(entry.details)
        match details.WhichOneof("content"):
            case "inline":
                content = details.inline
            case "external":
                data = _external(snapshot, entry, details.external.path, details.external.offset, details.external.size)
                content = index_pb2.FragmentReuseIndexDetails.InlineContent.FromString(data)
            case _:
                raise CorruptError("the details do not have content", where=where)
    except DecodeError as error:
        raise CorruptError("details are not a protobuf message", where=where, found=str(error)) from error
    return Reuse(tuple(ReuseVersion(v.dataset_version, _moved(v, where), v) for v in content.legacy_versions))


def _external(snapshot: Snapshot, entry: IndexMetadata, name: str, offset: int, size: int) -> bytes:
    store, base = snapshot.place(entry.base_id)
    directory = paths.index_directory(entry.uuid, is_dataset_root=base is None or base.is_dataset_root)
    source = store.open(f"{directory}/{name}")
    if offset + size > source.size:
        raise CorruptError(
            "the details reach beyond the end of the file", where=source.path, expected=source.size, found=size
        )
    (data,) = source.read([(offset, size)])
    return data.tobytes()


def _moved(version: index_pb2.FragmentReuseIndexDetails.Version, where: str) -> AddressMap:
    old = [f.id for group in version.groups for f in group.old_fragments]
    if len(set(old)) != len(old):
        raise CorruptError("a fragment is rewritten twice in one version", where=where, found=sorted(old))
    return AddressMap([_group(group, where) for group in version.groups], where)


def _group(group: index_pb2.FragmentReuseIndexDetails.Group, where: str) -> MovedGroup:
    for f in (*group.old_fragments, *group.new_fragments):
        if f.id >= FRAGMENT_IDS or f.physical_rows > ROW_OFFSETS:
            raise CorruptError(
                "a fragment is out of range",
                where=where,
                expected="id and rows < 2^32",
                found=f"{f.physical_rows} rows of fragment {f.id}",
            )
    first, length = treemap_runs(group.changed_row_addrs, where)
    return MovedGroup(
        tuple(f.id for f in group.old_fragments),
        tuple((f.id, f.physical_rows) for f in group.new_fragments),
        first,
        length,
    )
