"""Fragments of a table: their data files, deletion file, row ids and row versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

from lance_duck.errors import CorruptError
from lance_duck.wire import paths
from lance_duck.wire.files.data_file import LEGACY as LEGACY
from lance_duck.wire.files.data_file import TOMBSTONE as TOMBSTONE
from lance_duck.wire.files.data_file import UNSTABLE as UNSTABLE
from lance_duck.wire.files.data_file import DataFile as DataFile
from lance_duck.wire.files.data_file import data_file_from_proto as data_file_from_proto
from lance_duck.wire.files.data_file import version_text as version_text
from lance_duck.wire.files.overlay import Overlay, newest_last, overlay_from_proto
from lance_duck.wire.limits import FRAGMENT_IDS
from lance_duck.wire.pb import table_pb2


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """The file that lists the deleted rows of a fragment.

    Attributes:
        suffix: "arrow" for an Arrow IPC file, "bin" for a roaring bitmap.
        num_deleted_rows: Number of listed rows, or 0 if an old manifest does not store it.
    """

    suffix: str
    read_version: int
    id: int
    num_deleted_rows: int
    base_id: int | None

    def path(self, fragment_id: int) -> str:
        """Return the path of the file below the root of the table or base."""
        return paths.deletion_file(fragment_id, self.read_version, self.id, self.suffix)


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """Bytes that are stored in a separate file. Its path is relative to the root of the table."""

    path: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """A horizontal slice of the table.

    Attributes:
        id: Id of the fragment, which is the upper 32 bits of its row addresses.
        physical_rows: Number of rows before deletion, or 0 if an old manifest does not store it.
        row_ids: Serialized RowIdSequence, or the file that stores it. None without stable row ids.
        created_at: Serialized RowDatasetVersionSequence with each row's first version, or the file that stores it.
        last_updated_at: Serialized RowDatasetVersionSequence with each row's last update, or the file that stores it.
        overlays: New values of some cells. Later overlays take precedence.
    """

    id: int
    files: tuple[DataFile, ...]
    deletion_file: DeletionFile | None
    physical_rows: int
    row_ids: bytes | ExternalFile | None
    created_at: bytes | ExternalFile | None
    last_updated_at: bytes | ExternalFile | None
    overlays: tuple[Overlay, ...] = ()

    @property
    def num_rows(self) -> int:
        """Number of rows that are not deleted, according to the manifest."""
        return self.physical_rows - (self.deletion_file.num_deleted_rows if self.deletion_file else 0)

    @property
    def num_deletions(self) -> int:
        """Number of deleted rows, according to the manifest."""
        return self.deletion_file.num_deleted_rows if self.deletion_file else 0

    @property
    def all_files(self) -> tuple[DataFile, ...]:
        """Data files, including the files of overlays."""
        return (*self.files, *(overlay.file for overlay in self.overlays))


class Fragments(Sequence[Fragment]):
    """The fragments of a manifest. Each is built on first access.

    Args:
        load: Returns the messages of the manifest.
        where: Path of the manifest, for messages.
        counts_old: Whether the writer's row counts for 0.1 files are correct. The first writers stored wrong counts.
    """

    def __init__(
        self, load: Callable[[], Sequence[table_pb2.DataFragment]], where: str, *, counts_old: bool = True
    ) -> None:
        self._load = load
        self._where = where
        self._counts_old = counts_old
        self._built: dict[int, Fragment] = {}

    def __len__(self) -> int:
        ids: tuple[int, ...] | None = self.__dict__.get("_ids")
        return len(self._protos if ids is None else ids)

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fragment, ...]: ...
    def __getitem__(self, index: int | slice) -> Fragment | tuple[Fragment, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        built = self._built.get(index)
        if built is not None:
            return built
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        fragment = self._built.get(place)
        if fragment is None:
            fragment = fragment_from_proto(self._protos[place], self._where)
            if not self._counts_old and _has_old_files(self._protos[place]):
                fragment = without_counts(fragment)
            self._built[place] = fragment
        return fragment

    def __iter__(self) -> Iterator[Fragment]:
        self.check_ids()
        for i in range(len(self)):
            yield self[i]

    def __repr__(self) -> str:
        return f"<{len(self)} fragments of {self._where}>"

    def paths(self) -> list[tuple[str, ...]]:
        """Return the paths of each fragment's data files and overlays, in order, without building the fragments."""
        return [
            (*(file.path for file in proto.files), *(overlay.data_file.path for overlay in proto.overlays))
            for proto in self._protos
        ]

    def ids(self) -> list[int]:
        """Return the ids of all fragments, in order, without building the fragments. See also `check_ids`."""
        return list(self._ids)

    def check_ids(self) -> None:
        """Raise CorruptError if two fragments have the same id."""
        self._ids  # noqa: B018

    def follow(self, before: Fragments, added: Sequence[int]) -> None:
        """Take the ids from the previous version, which had the same fragments without the last ones.

        If one of the new ids is not higher than all others, all ids are read later.

        Args:
            before: Fragments of the previous version.
            added: Ids of the last fragments.
        """
        if len(set(added)) == len(added) and min(added, default=0) > before._highest:
            self.__dict__["_ids"] = (*before._ids, *added)
            self.__dict__["_highest"] = max(added, default=before._highest)

    @cached_property
    def id_set(self) -> frozenset[int]:
        """Ids of all fragments."""
        return frozenset(self._ids)

    @cached_property
    def places(self) -> Mapping[int, int]:
        """Positions of the fragments in the list, by fragment id."""
        return {fragment_id: place for place, fragment_id in enumerate(self._ids)}

    @cached_property
    def _protos(self) -> Sequence[table_pb2.DataFragment]:
        return self._load()

    @cached_property
    def _highest(self) -> int:
        return max(self._ids, default=-1)

    @cached_property
    def _ids(self) -> tuple[int, ...]:
        ids = tuple([p.id for p in self._protos])
        if len(set(ids)) < len(ids):
            raise repeated_id(ids, self._where)
        return ids

    def row_counts(self) -> Sequence[int] | None:
        """Return the number of live rows of each fragment, or None if an old manifest lacks a correct count."""
        return self._row_counts

    @cached_property
    def _row_counts(self) -> Sequence[int] | None:
        self.check_ids()
        counts = []
        for proto in self._protos:
            if not self._counts_old and _has_old_files(proto):
                return None
            deleted = 0
            if proto.HasField("deletion_file"):
                deleted = proto.deletion_file.num_deleted_rows
                if not deleted:
                    return None
            if not proto.physical_rows and proto.files:
                return None
            _check_deleted(deleted, proto, self._where)
            counts.append(proto.physical_rows - deleted)
        return tuple(counts)

    def stored_rows(self, fragment_id: int) -> int:
        """Return a fragment's physical row count in the manifest, even if it may be wrong. Returns 0 if unset."""
        return int(self._protos[self.places[fragment_id]].physical_rows)

    def summary(self) -> dict[str, str]:
        """Return the counts of fragments, files and rows, with pylance's names."""
        self.check_ids()
        deletions = [p.deletion_file.num_deleted_rows for p in self._protos if p.HasField("deletion_file")]
        rows = sum(p.physical_rows for p in self._protos)
        counts = {
            "total_data_file_rows": rows,
            "total_data_files": sum(len(p.files) for p in self._protos),
            "total_deletion_file_rows": sum(deletions),
            "total_deletion_files": len(deletions),
            "total_files_size": sum(f.file_size_bytes for p in self._protos for f in p.files),
            "total_fragments": len(self),
            "total_rows": rows - sum(deletions),
        }
        return {name: str(count) for name, count in counts.items()}


def repeated_id(ids: Sequence[int], where: str) -> CorruptError:
    """Return the error for two fragments with the same id."""
    repeated = sorted(i for i, count in Counter(ids).items() if count > 1)
    return CorruptError(
        f"duplicate fragment id {repeated[0]}",
        where=where,
        expected="a different id for each fragment",
        found=f"{len(repeated)} ids that repeat" if len(repeated) > 1 else None,
        remedy="restore an older version, or overwrite the table",
    )


def version_of_first(fragments: Iterable[table_pb2.DataFragment]) -> str | None:
    """Return the file version of the first data file, or None without files. Tables never mix 0.1 and 2.x files."""
    first = next((file for fragment in fragments for file in fragment.files), None)
    return None if first is None else version_text((first.file_major_version, first.file_minor_version))


def fragment_from_proto(proto: table_pb2.DataFragment, where: str) -> Fragment:
    """Build a fragment from its message.

    Raises:
        CorruptError: Counts in the message contradict each other, or a number is out of range.
    """
    deletion = deletion_from_proto(proto.deletion_file, where) if proto.HasField("deletion_file") else None
    if deletion is not None:
        _check_deleted(deletion.num_deleted_rows, proto, where)
    if max(proto.id, proto.physical_rows) >= FRAGMENT_IDS:
        raise CorruptError(
            "the fragment is out of range",
            where=where,
            expected="id and rows < 2^32",
            found=(proto.id, proto.physical_rows),
        )
    return Fragment(
        proto.id,
        tuple([data_file_from_proto(f, where) for f in proto.files]),
        deletion,
        proto.physical_rows,
        _bytes_of(proto, "row_id_sequence"),
        _bytes_of(proto, "created_at_version_sequence"),
        _bytes_of(proto, "last_updated_at_version_sequence"),
        newest_last(overlay_from_proto(o, where) for o in proto.overlays) if proto.overlays else (),
    )


def without_counts(fragment: Fragment) -> Fragment:
    """Return a fragment without the row counts from its manifest."""
    deletion = fragment.deletion_file and replace(fragment.deletion_file, num_deleted_rows=0)
    return replace(fragment, physical_rows=0, deletion_file=deletion)


def deletion_from_proto(proto: table_pb2.DeletionFile, where: str) -> DeletionFile:
    """Build a deletion file from its message.

    Raises:
        CorruptError: The type of the deletion file is unknown.
    """
    suffix = {0: "arrow", 1: "bin"}.get(int(proto.file_type))
    if suffix is None:
        raise CorruptError("unknown type of deletion file", where=where, expected="0 or 1", found=int(proto.file_type))
    base_id = proto.base_id if proto.HasField("base_id") else None
    return DeletionFile(suffix, proto.read_version, proto.id, proto.num_deleted_rows, base_id)


def _check_deleted(deleted: int, proto: table_pb2.DataFragment, where: str) -> None:
    if proto.physical_rows and deleted > proto.physical_rows:
        raise CorruptError(
            "there are more deleted rows than rows",
            where=f"{where}: fragment {proto.id}",
            expected=f"at most {proto.physical_rows}",
            found=deleted,
        )


def _has_old_files(proto: table_pb2.DataFragment) -> bool:
    return any(version_text((f.file_major_version, f.file_minor_version)) == LEGACY for f in proto.files)


def _bytes_of(proto: table_pb2.DataFragment, oneof: str) -> bytes | ExternalFile | None:
    name = proto.WhichOneof(oneof)
    if name is None:
        return None
    value = getattr(proto, name)
    return value if isinstance(value, bytes) else ExternalFile(value.path, value.offset, value.size)
