"""Options of a write: sizes, versions and locations of data files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol
from uuid import UUID

from lance_duck.arguments import suggest_names, unknown_value
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.file.write.blob_options import BlobOptions
from lance_duck.file.write.contract import page_bytes
from lance_duck.store import Store
from lance_duck.wire.fragment import LEGACY, UNSTABLE, Fragment

ROWS_PER_FILE: Final = 1024 * 1024
BYTES_PER_FILE: Final = 90 << 30
NEWEST: Final = "2.2"

_VERSIONS: Final = MappingProxyType(
    {"stable": NEWEST, "2.0": "2.0", "2.1": "2.1", "2.2": "2.2", "legacy": LEGACY, LEGACY: LEGACY}
)
_UNWRITTEN: Final = frozenset({"next", UNSTABLE})


class Jsonb(Enum):
    """How to treat JSON in Lance's binary form."""

    TEXT = "checked, and read as text"
    CHECKED = "checked, and kept"
    TRUSTED = "kept"


@suggest_names
@dataclass(frozen=True, slots=True)
class WriteProgress:
    """The progress of a write: rows consumed, bytes written, and files finished."""

    rows: int
    bytes: int
    files: int


class WriteObserver(Protocol):
    """An observer of the fragments of a write."""

    def begin(self, fragment: Fragment) -> None:
        """Observe that a file was started. The file has a name, but no fields yet."""

    def complete(self, fragment: Fragment) -> None:
        """Observe that a file is complete."""


@dataclass(frozen=True, slots=True)
class Base:
    """A location for data files other than the root of the table.

    Attributes:
        id: Id of the base path in the manifest.
        store: Store at the location.
        is_dataset_root: Whether the location has the directories of a table. Otherwise, files are stored at its top
            level.
    """

    id: int
    store: Store
    is_dataset_root: bool = True


@dataclass(frozen=True)
class WriteOptions:
    """The options for writing batches to files.

    Attributes:
        max_rows_per_file: Maximum row count of a file.
        max_rows_per_group: Batch size in 0.1 files, in rows. Files of version 2 are not divided into batches.
        batch_rows: Row counts of the batches in a 0.1 file that is added to an existing fragment. All files of a
            fragment have equal batches. If empty, each batch has `max_rows_per_group` rows.
        max_bytes_per_file: Size, in bytes, after which a new file is started. Incomplete pages may make a file larger.
        data_storage_version: "2.0", "2.1", "2.2" or "stable", "0.1" or "legacy". Default: "2.2".
        bases: Locations that receive the files in rotation. None as an item means the table root. Default: the root.
        data_cache_bytes: Maximum size, in bytes, of the values that wait for full pages, over all columns. Default:
            8 MiB for each column.
        max_page_bytes: Maximum size of the values in a page, in bytes. Default: 32 MiB.
        blobs: Storage of blobs, and treatment of references to external files.
        progress: Called repeatedly with the progress, at least after each file.
        watch: Observer that is notified when a file is started or complete.
        committed_here: Whether this process commits the files. The commit then flushes the names of files in the
            table's root. Names in other locations are always flushed during the write.
        metadata: Entries for the file descriptors, in addition to the schema metadata.
        transaction: Transaction that writes the files. Their names then begin with `paths.transaction_data`.
        jsonb: How to treat JSON in binary form. The JSON is validated unless it comes from the table itself.
        threads: Number of threads that encode columns. Default: the number of cores.

    Raises:
        InvalidInputError: A limit is below 1, or a version is unknown.
        UnsupportedError: Files of a version can only be read.
    """

    max_rows_per_file: int = ROWS_PER_FILE
    max_rows_per_group: int = 1024
    batch_rows: Sequence[int] = ()
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
    jsonb: Jsonb = Jsonb.CHECKED

    def __post_init__(self) -> None:
        for name in ("max_rows_per_file", "max_rows_per_group", "max_bytes_per_file"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 1 << 63:
                raise InvalidInputError(name, expected="a number from 1 to 2^63 - 1", found=repr(number))
        page_bytes(1, self.data_cache_bytes, self.max_page_bytes)
        self.version  # noqa: B018  raises for an unknown version

    def within(self, limit: int) -> WriteOptions:
        """Return the options with a memory limit for rows in flight, in bytes."""
        return replace(self, data_cache_bytes=min(self.data_cache_bytes or limit, max(1, limit // 4)), threads=1)

    @property
    def version(self) -> str:
        """Data file version: "0.1", "2.0", "2.1" or "2.2"."""
        return storage_version(self.data_storage_version)


def rewritten_version(version: str) -> str:
    """Return the version in which to rewrite data files: the same version, or the newest if it can only be read."""
    return NEWEST if version in _UNWRITTEN else version


def storage_version(name: str | None) -> str:
    """Return the data file version that a user named, or the newest version for None.

    Raises:
        InvalidInputError: The name is not a known version.
        UnsupportedError: Files of this version can only be read.
    """
    if name is None:
        return NEWEST
    version = _VERSIONS.get(str(name).lower())
    if version is not None:
        return version
    where, expected = "data_storage_version", ", ".join(_VERSIONS)
    if str(name).lower() in _UNWRITTEN:
        raise UnsupportedError(
            "this data file version cannot be written",
            where=where,
            expected=expected,
            found=name,
            remedy="optimize.compact_files() rewrites a 2.3 table as 2.2",
        )
    raise unknown_value("unknown version of data files", name, _VERSIONS, where)
