"""Looks up the dataset to which a name or path currently refers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial

from lance_duck.arguments import known_names
from lance_duck.dataset import LanceDataset, dataset
from lance_duck.duck.tables.statement_versions import found_once, is_in_statement, listed_state, statement_point
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.forks import Lock
from lance_duck.groups.log import CommitLog
from lance_duck.groups.reading import ReadPoint
from lance_duck.maintenance.auto_cleanup import auto_cleanup
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Location, Snapshot
from lance_duck.snapshot.refs import MAIN
from lance_duck.store import let_go_below, local_path


@dataclass(frozen=True)
class VersionChoice:
    """The requested version of a table. If all attributes are None, the newest version.

    Attributes:
        version: Version number, tag name, branch name or `branch:number`, as a string.
        tag: Name of a tag.
        asof: Time in ISO format.
        branch: Branch to which the other attributes refer. Defaults to the opened branch.
    """

    version: str | None = None
    tag: str | None = None
    asof: str | None = None
    branch: str | None = None

    def __post_init__(self) -> None:
        for what, text in (("version", self.version), ("time", self.asof)):
            if text is not None and not text.strip():
                raise InvalidInputError(f"the {what} is empty", expected=f"a {what}", found="NULL or an empty string")
        if sum(part is not None for part in (self.version, self.tag, self.asof)) > 1:
            raise InvalidInputError("several arguments choose a version", expected="only one of version, tag and asof")

    @property
    def is_newest(self) -> bool:
        """Whether the newest version is requested."""
        return self.version is None and self.tag is None and self.asof is None and self.branch is None

    @property
    def is_number(self) -> bool:
        """Whether a fixed version number is requested. The version of a tag or time may change."""
        return self.branch is None and self.version is not None and _is_number(self.version)

    @property
    def is_newest_or_number(self) -> bool:
        """Whether the newest version or a version number is requested."""
        return self.is_newest or self.is_number

    def open(self, uri: str, storage_options: Mapping[str, str] | None, log_rows: str | None = None) -> LanceDataset:
        """Open the version of a table. `log_rows` is `dataset`'s argument `log`.

        Raises:
            NotFoundError: The table, version, tag or branch does not exist.
            InvalidInputError: The value is not a valid version or time.
        """
        opened_dataset = partial(dataset, uri, storage_options=storage_options, log=log_rows)
        if self.asof is not None:
            return _as_of(opened_dataset, self.asof, self.branch)
        text = self.tag if self.tag is not None else self.version
        if text is None:
            return opened_dataset(None if self.branch is None else (self.branch, None))
        number = int(text) if self.tag is None and _is_number(text) else text
        if self.branch is not None:
            return opened_dataset((self.branch, number))
        if self.tag is None and isinstance(number, str):
            return _named(opened_dataset, number)
        return opened_dataset(number)


def _is_number(text: str) -> bool:
    return text.strip().isdecimal()


def _as_of(opened_dataset: Callable[..., LanceDataset], text: str, branch: str | None) -> LanceDataset:
    """Open the newest version at or before a time."""
    end = _time(text)
    try:
        if branch is None:
            return opened_dataset(asof=end)
        snapshot = opened_dataset((branch, None)).handle.snapshot.checkout(None, end)
        return LanceDataset(snapshot.uri, table=TableScan(snapshot))
    except NotFoundError as error:
        newest = opened_dataset(None if branch is None else (branch, None))
        raise NotFoundError(
            f"{datetime.fromisoformat(text.strip()).isoformat(' ')} is earlier than the first version of this table",
            where=newest.uri,
            remedy="lance_versions lists the existing versions",
        ) from error


def _named(opened_dataset: Callable[..., LanceDataset], name: str) -> LanceDataset:
    """Open the version for a tag, a branch or `branch:number`."""
    branch, colon, number = name.rpartition(":")
    if colon:
        return opened_dataset((branch, int(number) if _is_number(number) else number))
    try:
        return opened_dataset(name)
    except NotFoundError as error:
        table = opened_dataset()
        if name == MAIN or name in table.branches.list():
            return opened_dataset((name, None))
        raise NotFoundError(
            f"no version, tag or branch {name!r}",
            where=table.uri,
            expected=f"a tag ({known_names(table.tags.list())}), a branch ({known_names(table.branches.list())}), "
            "branch:version or a number",
        ) from error


@dataclass
class TableHandle:
    """A table that statements can refer to by name or path.

    Attributes:
        uri: Location of the table.
        choice: The requested version.
        storage_options: Credentials and settings of its object store.
        given: The dataset that the caller passed, if any. It is read at its own version.
        check: Raises an error if statements may not access the location.
        is_draft: Whether the current transaction has created the table. It always reads its newest version.
        log: The commit log of its folder, or None.
        log_rows: Which rows of the table's write-ahead log are read: see `dataset`. A given dataset decides itself.
    """

    uri: str
    choice: VersionChoice = field(default_factory=VersionChoice)
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    given: LanceDataset | None = None
    check: Callable[[], None] | None = None
    is_draft: bool = False
    log: CommitLog | None = None
    log_rows: str | None = None
    _opened: LanceDataset | None = None
    _stamp: str | None = None
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def place(self) -> str:
        """Canonical location. Handles with the same location refer to the same table."""
        return Location.of(self.uri).uri.rstrip("/")

    @property
    def identity(self) -> tuple[str, VersionChoice]:
        """Location and version. Handles with equal identities read the same data."""
        return self.place, self.choice

    def current(self) -> LanceDataset:
        """Return the dataset that a statement reads, at the transaction's version or the newest version."""
        pinned = None if self.is_draft else pinned_versions()
        return self.newest() if pinned is None else pinned.of(self)

    def reader(self) -> Callable[[], LanceDataset]:
        """Return a function that returns the dataset.

        If a transaction is open now, it always uses that transaction's version.
        """
        pinned = None if self.is_draft else pinned_versions()
        return self.newest if pinned is None else lambda: pinned.of(self)

    def shared(self) -> LanceDataset:
        """Return the dataset for a source that all connections read.

        Raises:
            UnsupportedError: The transaction of this connection reads a different version, which other connections must
                not read.
        """
        pinned = pinned_versions()
        if pinned is None or self.is_draft:
            return self.newest()
        pinned.note_bound()
        if self.identity in pinned.checked:
            return pinned.of(self)
        newest = self.newest()
        if pinned.is_newest(self, newest):
            return newest
        raise UnsupportedError(
            "a view or a prepared statement reads a Lance table that changed after this transaction began",
            where=self.uri,
            remedy="read the table directly in the statement, or COMMIT first",
        )

    def newest(self) -> LanceDataset:
        """Return the current dataset, looked up once per statement.

        This is the newest version, or the version to which the requested tag or time currently resolves.
        """
        return self.given if self.given is not None else found_once(lambda: self.identity, self._find)

    def _find(self) -> LanceDataset:
        """Return the newest version that belongs to the state that the statement or transaction reads."""
        log = self.log
        if log is None or not self.choice.is_newest:
            return self._look_up()
        pinned = pinned_versions()
        has_point = pinned is not None and not pinned.is_over
        point = pinned.point if pinned is not None and has_point else statement_point()
        found: list[LanceDataset] = []

        def find() -> Snapshot:
            found.append(self._look_up())
            return found[-1].handle.snapshot

        listed = listed_state(log) if has_point or is_in_statement() else None
        version = point.version(log, find, listed)
        if version is None:
            return found[-1]
        older = found[-1].checkout_version(version)
        point.version(log, lambda: older.handle.snapshot, listed)  # the table may have been renamed meanwhile
        return older

    def _look_up(self) -> LanceDataset:
        if self.check is not None:
            self.check()
        with self._lock:
            opened_dataset = self._opened
            if opened_dataset is None or not self.choice.is_newest_or_number:
                opened_dataset = self.choice.open(self.uri, self.storage_options, self.log_rows)
            elif self.log_rows is not None:
                opened_dataset = _newest_view(opened_dataset)
            elif self.choice.is_newest and (latest := opened_dataset.latest_version) != opened_dataset.version:
                opened_dataset = opened_dataset.checkout_version(latest)
            elif _stamp(opened_dataset) != self._stamp:  # the table was dropped and created again
                opened_dataset = self.choice.open(self.uri, self.storage_options)
            if opened_dataset is not self._opened:
                self._opened, self._stamp = opened_dataset, _stamp(opened_dataset)
            return opened_dataset

    def let_go(self) -> None:
        """Close the table. The next lookup reopens it."""
        with self._lock:
            self._opened = self._stamp = None
        path = local_path(self.uri)
        if path is not None:
            let_go_below(path)

    def move_to(self, snapshot: Snapshot) -> None:
        """Move to the version that a change created. A dataset passed by the caller moves as well."""
        if self.given is not None:
            self.given.handle.move_to(snapshot)
            return
        with self._lock:
            if self._opened is None or self._opened.version < snapshot.version:
                self._opened = LanceDataset(self.uri, table=TableScan(snapshot))
                self._stamp = _stamp(self._opened)
        auto_cleanup(snapshot)

    def at(self, choice: VersionChoice) -> TableHandle:
        """Return the same table at a different version."""
        return replace(self, choice=choice, given=None, is_draft=False, _opened=None, _stamp=None, _lock=Lock())


class PinnedVersions:
    """The table versions that a transaction reads.

    A table is read at the version that was current on first use, or with the transaction's own changes.

    Attributes:
        is_over: Whether the transaction has ended. Tables are then read at their newest versions again.
        point: The state of the commit logs that the transaction reads.
        checked: Identities of tables whose newest version is that of the transaction, for one statement. Other writers
            may add a version before DuckDB binds the table.
    """

    def __init__(self) -> None:
        self.checked: set[tuple[str, VersionChoice]] = set()
        self._datasets: dict[tuple[str, VersionChoice], Callable[[], LanceDataset]] = {}
        self._bound = False
        self.is_over = False
        self.point = ReadPoint()

    def of(self, handle: TableHandle) -> LanceDataset:
        """Return the dataset to read for a handle."""
        if self.is_over or handle.choice.is_number:
            return handle.newest()
        key = handle.identity
        if key not in self._datasets:
            self.pin(handle, _constant(handle.newest()))
        return self._datasets[key]()

    def pin(self, handle: TableHandle, dataset: Callable[[], LanceDataset]) -> None:
        """From now on, read the handle's table from the dataset that a function returns."""
        self._datasets[handle.identity] = dataset

    def is_newest(self, handle: TableHandle, newest: LanceDataset) -> bool:
        """Return whether the transaction reads the newest version of a table."""
        dataset = self.of(handle)
        same_manifest = dataset.handle.snapshot.manifest.path == newest.handle.snapshot.manifest.path
        same_state = dataset.handle.snapshot.state == newest.handle.snapshot.state
        return dataset is newest or (same_manifest and same_state)

    def note_bound(self) -> None:
        """Record that DuckDB bound a table. It may look up the table again, possibly after the transaction."""
        self._bound = True

    def take_bound(self) -> bool:
        """Return whether `note_bound` was called since the last call."""
        bound, self._bound = self._bound, False
        return bound

    @contextmanager
    def reading(self) -> Iterator[PinnedVersions]:
        """Use these versions while DuckDB binds and runs a statement in this thread."""
        token = _PINNED.set(self)
        try:
            yield self
        finally:
            with suppress(ValueError):  # after Ctrl-C before the body, the generator is closed in a different context
                _PINNED.reset(token)


_PINNED: ContextVar[PinnedVersions | None] = ContextVar("lance_duck_pinned_versions", default=None)


def pinned_versions() -> PinnedVersions | None:
    """Return the versions that this thread's statement reads. Returns None outside transactions."""
    return _PINNED.get()


@contextmanager
def unpinned() -> Iterator[None]:
    """While the context is open, read tables at their newest committed versions."""
    token = _PINNED.set(None)
    try:
        yield
    finally:
        _PINNED.reset(token)


def _newest_view(dataset: LanceDataset) -> LanceDataset:
    """Return a dataset of the newest state of its table and log. Returns the same dataset if nothing changed."""
    snapshot = dataset.handle.snapshot.checkout()
    return dataset if snapshot is dataset.handle.snapshot else LanceDataset(dataset.uri, table=TableScan(snapshot))


def _constant(dataset: LanceDataset) -> Callable[[], LanceDataset]:
    return lambda: dataset


def _stamp(opened_dataset: LanceDataset) -> str | None:
    """Return a stamp that changes if the table is replaced. Returns None on object stores."""
    snapshot = opened_dataset.handle.snapshot
    if local_path(snapshot.uri) is None:
        return None
    return snapshot.store.stamp(snapshot.manifest.path.removeprefix(snapshot.store.uri).lstrip("/"))


def _time(text: str) -> datetime:
    """Return the time before which a version must be committed to be included as of the given time."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidInputError("not a timestamp", expected="such as 2025-11-20 08:15:00", found=repr(text)) from error
    with suppress(OverflowError):
        return time + timedelta(microseconds=1)
    return time
