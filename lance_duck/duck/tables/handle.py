"""Which dataset a name or path stands for at this moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lance_duck.dataset import LanceDataset, dataset
from lance_duck.errors import InvalidInputError
from lance_duck.forks import Lock
from lance_duck.maintenance.auto_cleanup import auto_cleanup
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Location, Snapshot
from lance_duck.store import local_path


@dataclass(frozen=True)
class VersionChoice:
    """The version of a table that a statement asks for; the newest when all is None.

    Attributes:
        version: Number or name of a tag, as text.
        tag: Name of a tag.
        asof: Time in ISO format.
    """

    version: str | None = None
    tag: str | None = None
    asof: str | None = None

    def __post_init__(self) -> None:
        if sum(part is not None for part in (self.version, self.tag, self.asof)) > 1:
            raise InvalidInputError("more than one version asked for", expected="one of version, tag and asof")

    @property
    def is_newest(self) -> bool:
        """Whether no version was asked for."""
        return self == VersionChoice()

    @property
    def is_newest_or_number(self) -> bool:
        """Whether it is certain which number is meant, other than with tags, which move, and times."""
        return self.is_newest or isinstance(self.arguments.get("version"), int)

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `lance_duck.dataset`."""
        if self.asof is not None:
            return {"asof": _time(self.asof)}
        name = self.tag if self.tag is not None else self.version
        if name is None:
            return {}
        is_number = self.tag is None and name.strip().isdecimal()
        return {"version": int(name) if is_number else name}


@dataclass
class TableHandle:
    """A table that DuckDB knows by a name or path.

    Attributes:
        uri: Where it is.
        choice: Which version.
        storage_options: Credentials and settings of its object store.
        given: The dataset itself where the caller handed one over; it is read as it stands.
    """

    uri: str
    choice: VersionChoice = field(default_factory=VersionChoice)
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    given: LanceDataset | None = None
    _opened: LanceDataset | None = None
    _stamp: str | None = None
    _lock: Lock = field(default_factory=Lock)

    @property
    def place(self) -> str:
        """Where it is, spelled in one way: two handles of one place are of one table."""
        return Location.of(self.uri).uri.rstrip("/")

    def current(self) -> LanceDataset:
        """Return the dataset as it is now: the newest version, or what the chosen tag or time means today."""
        if self.given is not None:
            return self.given
        with self._lock:
            opened = self._opened
            if opened is None or not self.choice.is_newest_or_number:
                opened = dataset(self.uri, storage_options=self.storage_options, **self.choice.arguments)
            elif self.choice.is_newest and (latest := opened.latest_version) != opened.version:
                opened = opened.checkout_version(latest)
            elif _stamp(opened) != self._stamp:  # the table was dropped and made again
                opened = dataset(self.uri, storage_options=self.storage_options, **self.choice.arguments)
            if opened is not self._opened:
                self._opened, self._stamp = opened, _stamp(opened)
            return opened

    def move_to(self, snapshot: Snapshot) -> None:
        """Go to the version that a change made; a dataset that the caller handed over moves there, too."""
        if self.given is not None:
            self.given.handle.move_to(snapshot)
            return
        with self._lock:
            if self._opened is None or self._opened.version < snapshot.version:
                self._opened = LanceDataset(self.uri, table=TableScan(snapshot))
                self._stamp = _stamp(self._opened)
        auto_cleanup(snapshot)

    def at(self, choice: VersionChoice) -> TableHandle:
        """Return the same table at a chosen version."""
        return TableHandle(self.uri, choice, self.storage_options)


def _stamp(opened: LanceDataset) -> str | None:
    """Return what tells the manifest from that of another table at its place; None on object stores."""
    snapshot = opened.handle.snapshot
    if local_path(snapshot.uri) is None:
        return None
    return snapshot.store.stamp(snapshot.manifest.path.removeprefix(snapshot.store.uri).lstrip("/"))


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidInputError("bad time", expected="such as 2025-11-20 08:15:00", found=repr(text)) from error
