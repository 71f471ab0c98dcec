"""Progress of a stream through a table: offsets, and the versions between two offsets.

    {"version": 7, "index": 2, "snapshot": false}

identifies the next rows to read: the rows added by version 7, from its third new fragment on. If "snapshot" is true,
the index counts all fragments of version 7, not only the new ones. The first offset of a stream that reads the existing
rows has this form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from lance_duck.cache import LruCache
from lance_duck.dataset import LanceDataset
from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError
from lance_duck.snapshot import Snapshot
from lance_duck.spark.io.stream_options import Limits, StreamOptions
from lance_duck.verbs.inserted_rows import DELETE, Arrivals, arrivals
from lance_duck.wire.fragment import Fragment

KEPT_STEPS = 4096


@dataclass(frozen=True, order=True)
class Offset:
    """The next rows to read, as described in the module docstring.

    `snapshot` is True only for the initial version of a stream.
    """

    version: int
    index: int = 0
    snapshot: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Offset:
        """Parse the offset of a checkpoint.

        Raises:
            CorruptError: The values are not an offset of a table.
        """
        version, index, snapshot = values.get("version"), values.get("index"), values.get("snapshot", False)
        if isinstance(snapshot, bool) and _is_count(version) and _is_count(index):
            return cls(version, index, snapshot)
        raise CorruptError(
            "invalid stream offset", expected='{"version": 7, "index": 0, "snapshot": false}', found=dict(values)
        )

    def json(self) -> dict[str, Any]:
        """Return the offset as stored in checkpoints."""
        return {"version": self.version, "index": self.index, "snapshot": self.snapshot}


@dataclass(frozen=True)
class NewFragment:
    """A fragment with new rows.

    Attributes:
        fragment: Id of the fragment.
        rows: Number of rows that are not deleted.
        size: Total size of its files, in bytes.
        files: Names of its data files, or None if it had deleted rows when it was added.
    """

    fragment: int
    rows: int
    size: int
    files: tuple[str, ...] | None


@dataclass(frozen=True)
class Step:
    """A version between two offsets, and the fragments of this version to read."""

    version: int
    first: int
    pieces: tuple[NewFragment, ...]
    snapshot: bool


class Walk:
    """Iterates over the versions of a table for a stream.

    Args:
        table: Any version of the branch.
        options: Options that determine the treatment of changed rows and removed versions.
    """

    def __init__(self, table: LanceDataset, options: StreamOptions) -> None:
        self._base: Snapshot = table.handle.snapshot
        self._options = options
        self._brought: LruCache[tuple[NewFragment, ...]] = LruCache(KEPT_STEPS)

    def newest(self) -> int:
        """Return the number of the newest version."""
        return self._base.latest_version()

    def begin(self) -> Offset:
        """Return the first offset of a new stream."""
        options = self._options
        if options.starting_version == "latest":
            return Offset(self.newest() + 1)
        if options.starting_version is not None:
            return Offset(int(options.starting_version))
        if options.starting_timestamp is not None:
            return Offset(self._first_since(options.starting_timestamp))
        return Offset(self.newest(), 0, True)

    def advance(self, start: Offset, until: Offset, limits: Limits) -> Offset:
        """Return the end of one batch. A batch ends at `until` or at a limit, and contains at least one fragment."""
        reached, budget = start, limits.budget()
        for step in self.steps(start, until, stop_at_change=True):
            for number, piece in enumerate(step.pieces):
                if not budget.admits(piece.rows, piece.size):
                    return reached
                reached = Offset(step.version, step.first + number + 1, step.snapshot)
            reached = Offset(step.version + 1)
        return reached

    def steps(self, start: Offset, until: Offset, *, stop_at_change: bool = False) -> Iterator[Step]:
        """Yield the versions from one offset to another, with the fragments in between.

        Args:
            start: First offset.
            until: Last offset.
            stop_at_change: Stop before a version that changed rows, unless it is the first one.

        Raises:
            InvalidInputError: A version changed rows, and the options do not skip it.
            NotFoundError: A version was cleaned up, or the offset is past the newest version.
        """
        self._check(start)
        here = start
        while here < until:
            try:
                pieces = self._pieces(here)
            except _Changed as error:
                if stop_at_change and here != start:
                    return
                raise InvalidInputError(
                    f"version {here.version} changed rows ({error.operation})",
                    where=self._base.uri,
                    remedy="set skipChangeCommits=true to skip these versions, or ignoreDeletes=true to skip deletes",
                ) from None
            last = until.index if until.version == here.version else len(pieces)
            yield Step(here.version, here.index, pieces[here.index : last], here.snapshot)
            here = Offset(here.version + 1)

    def at(self, version: int) -> Snapshot:
        """Return a version."""
        return self._base.checkout(version)

    def _pieces(self, here: Offset) -> tuple[NewFragment, ...]:
        return self._brought.get((here.version, here.snapshot), lambda: self._read(here))

    def _read(self, here: Offset) -> tuple[NewFragment, ...]:
        try:
            now = self.at(here.version)
        except NotFoundError as error:
            if self._options.fail_on_data_loss:
                raise NotFoundError(
                    f"the next version of the stream, {here.version}, was cleaned up",
                    where=self._base.uri,
                    remedy="set failOnDataLoss=false to continue with the remaining versions, or start a "
                    "new checkpoint",
                ) from error
            return ()
        if here.snapshot:
            return tuple(_piece(now, fragment) for fragment in now.fragments)
        rows = arrivals(now)
        if rows.changed and not self._passes_over(rows):
            raise _Changed(rows.operation)
        return tuple(_piece(now, now.fragment(number)) for number in rows.fragments)

    def _passes_over(self, rows: Arrivals) -> bool:
        if self._options.skip_change_commits:
            return True
        return self._options.ignore_deletes and rows.operation == DELETE

    def _check(self, start: Offset) -> None:
        newest = self.newest()
        if start.version > newest + 1:
            raise NotFoundError(
                f"the stream has read version {start.version - 1}, which does not exist",
                where=self._base.uri,
                found=f"newest version {newest}",
                remedy="start a new checkpoint if the table was created again",
            )

    def _first_since(self, moment: Any) -> int:
        """Return the number of the first version committed at or after a time."""
        numbers = self._base.version_numbers()
        low, high = 0, len(numbers)
        while low < high:
            middle = (low + high) // 2
            if self.at(numbers[middle]).timestamp < moment:
                low = middle + 1
            else:
                high = middle
        return numbers[low] if low < len(numbers) else numbers[-1] + 1


class _Changed(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, operation: str) -> None:
        super().__init__(operation)
        self.operation = operation


def _piece(now: Snapshot, fragment: Fragment) -> NewFragment:
    files = None if fragment.deletion_file is not None else tuple(file.path for file in fragment.files)
    return NewFragment(fragment.id, now.num_rows(fragment), sum(f.file_size or 0 for f in fragment.files), files)


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
