"""How data are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Protocol
from uuid import UUID

from lance_duck.arguments import unknown_value
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.file.write.blob_options import BlobOptions
from lance_duck.file.write.contract import page_bytes
from lance_duck.store import Store
from lance_duck.wire.fragment import Fragment

ROWS_PER_FILE: Final = 1024 * 1024
BYTES_PER_FILE: Final = 90 << 30
NEWEST: Final = "2.2"

_VERSIONS: Final = MappingProxyType({"stable": NEWEST, "2.0": "2.0", "2.1": "2.1", "2.2": "2.2"})
_UNWRITTEN: Final = frozenset({"legacy", "0.1", "next", "2.3"})


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """How far a write is: rows taken, bytes in files, and files that are finished."""

    rows: int
    bytes: int
    files: int


class WriteObserver(Protocol):
    """Is told of the fragments of a write."""

    def begin(self, fragment: Fragment) -> None:
        """Observe that a file was begun: named, and without fields yet."""

    def complete(self, fragment: Fragment) -> None:
        """Observe that a file is complete."""


@dataclass(frozen=True, slots=True)
class Base:
    """Another place for data files than the root of the table.

    Attributes:
        id: As the manifest has it.
        store: Files of the place.
        is_dataset_root: Whether it is laid out like a table; files lie at its top otherwise.
    """

    id: int
    store: Store
    is_dataset_root: bool = True


@dataclass(frozen=True)
class WriteOptions:
    """How batches become files.

    Attributes:
        max_rows_per_file: Rows after which the next file is begun.
        max_rows_per_group: Checked, and without effect: files of version 2 have no groups.
        max_bytes_per_file: Bytes after which it is; a file may be larger by the pages that were not full then.
        data_storage_version: "2.0", "2.1", "2.2" or "stable"; None is "2.2".
        bases: Where the files go, one after the other; None among them, and none at all, is the root of the table.
        data_cache_bytes: Bytes of values that wait for their pages to be full, over all columns; None: 8 MiB for each.
        max_page_bytes: Most bytes of values of a page; None: 32 MiB.
        blobs: Where blobs go, and what becomes of references to external files.
        progress: Called now and then, at least after each file.
        watch: Told when files are begun, and when they are whole.
        committed_here: Whether this process commits the files, so that names in the root of the table need not be
            flushed before; those in other places are, always.
        metadata: Entries for the descriptors of the files, beside the metadata of the schema.
        transaction: Transaction of the files: their names begin with what `paths.transaction_data` says.
        threads: Threads that encode columns; None: one for each core.

    Raises:
        InvalidInputError: A limit below 1, or an unknown version.
        UnsupportedError: A version that is not written.
    """

    max_rows_per_file: int = ROWS_PER_FILE
    max_rows_per_group: int = 1024
    max_bytes_per_file: int = BYTES_PER_FILE
    data_storage_version: str | None = None
    bases: Sequence[Base | None] = ()
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    blobs: BlobOptions = field(default_factory=BlobOptions)
    progress: Callable[[WriteProgress], None] | None = None
    watch: WriteObserver | None = None
    committed_here: bool = False
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    transaction: UUID | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_rows_per_file", "max_rows_per_group", "max_bytes_per_file"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 1 << 63:
                raise InvalidInputError(name, expected="a number from 1 to 2^63 - 1", found=repr(number))
        page_bytes(1, self.data_cache_bytes, self.max_page_bytes)
        self.version  # noqa: B018  refuses an unknown version at once

    def within(self, limit: int) -> WriteOptions:
        """Return the same, where the rows on their way into a file take about so many bytes at most."""
        return replace(self, data_cache_bytes=min(self.data_cache_bytes or limit, max(1, limit // 4)), threads=1)

    @property
    def version(self) -> str:
        """Version of the files: "2.0", "2.1" or "2.2"."""
        return storage_version(self.data_storage_version)


def rewritten_version(version: str) -> str:
    """Return the version that data files of a version are rewritten in: the newest, if theirs is only read."""
    return NEWEST if version in _UNWRITTEN else version


def storage_version(name: str | None) -> str:
    """Return the version of data files that a user's name for it means; None is the newest.

    Raises:
        InvalidInputError: No version is called so.
        UnsupportedError: The version is not written.
    """
    if name is None:
        return NEWEST
    version = _VERSIONS.get(str(name).lower())
    if version is not None:
        return version
    where, expected = "data_storage_version", ", ".join(_VERSIONS)
    if str(name).lower() in _UNWRITTEN:
        raise UnsupportedError(
            "version of data files that is not written",
            where=where,
            expected=expected,
            found=name,
            remedy="optimize.compact_files() writes a table of this version as 2.2",
        )
    raise unknown_value("unknown version of data files", name, _VERSIONS, where)
