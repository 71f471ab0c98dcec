"""Reads as plans: code yields the byte ranges that it needs, and its caller fetches them.

A `Request[T]` is a generator. It yields lists of `ByteRange`, receives the bytes of each range (in the same order),
and returns a T. Requests compose. `gather` runs many requests in rounds: one round of reads serves all columns of a
batch. Only `run` fetches bytes. A decoder is therefore the same for a memory map and for S3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lance_duck.forks import Lock
from lance_duck.store.costs import REQUESTS_AT_ONCE

Bytes = NDArray[np.uint8]
T = TypeVar("T")


class ByteSource(Protocol):
    """One immutable object of a store, opened for range reads."""

    @property
    def path(self) -> str:
        """Name for messages."""

    @property
    def size(self) -> int:
        """Size of the object in bytes."""

    @property
    def remote(self) -> bool:
        """Whether a read costs a round trip."""

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Return a read-only uint8 array for each (offset, size), zero-copy if the object is mapped.

        If a read costs a round trip, nearby ranges are merged and fetched concurrently.

        Raises:
            CorruptError: A range extends past the end of the object.
            StoreError: The store failed.
        """


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`size` bytes at `offset` of `source`."""

    source: ByteSource
    offset: int
    size: int


Request = Generator[list[ByteRange], list[Bytes], T]


def run(request: Request[T]) -> T:
    """Run a request to its end, fetching the requested bytes, and return its result."""
    try:
        ranges = next(request)
        while True:
            ranges = request.send(fetch(ranges))
    except StopIteration as stop:
        result: T = stop.value
        return result


@dataclass(eq=False)
class ReadCounts:
    """Counts of reads.

    Attributes:
        ranges: Number of requested byte ranges.
        size: Number of bytes of these ranges.
        by_path: Number of ranges of each file.
    """

    ranges: int = 0
    size: int = 0
    by_path: Counter[str] = field(default_factory=Counter)


@contextmanager
def watched() -> Iterator[ReadCounts]:
    """Count all bytes that this process reads during the block."""
    counts = ReadCounts()
    _WATCHING.append(counts)
    try:
        yield counts
    finally:
        _WATCHING.remove(counts)


def is_watched() -> bool:
    """Return whether reads are being counted. Code must then read only through `fetch`."""
    return bool(_WATCHING)


_WATCHING: Final[list[ReadCounts]] = []
_COUNTING: Final = Lock()


def _count(ranges: Sequence[ByteRange]) -> None:
    with _COUNTING:
        for counts in _WATCHING:
            counts.ranges += len(ranges)
            counts.size += sum(r.size for r in ranges)
            counts.by_path.update(r.source.path for r in ranges)


def fetch(ranges: Sequence[ByteRange]) -> list[Bytes]:
    """Read all ranges, and return them in order. Each source is read in one call, remote sources concurrently."""
    if _WATCHING:
        _count(ranges)
    if ranges and all(r.source is ranges[0].source for r in ranges):
        return ranges[0].source.read([(r.offset, r.size) for r in ranges])
    by_source: dict[int, list[int]] = {}
    for i, r in enumerate(ranges):
        by_source.setdefault(id(r.source), []).append(i)
    groups = list(by_source.values())
    pieces: list[Any] = [None] * len(ranges)

    def read(places: list[int]) -> None:
        source = ranges[places[0]].source
        for i, data in zip(places, source.read([(ranges[i].offset, ranges[i].size) for i in places]), strict=True):
            pieces[i] = data

    if len(groups) > 1 and any(ranges[places[0]].source.remote for places in groups):
        with ThreadPoolExecutor(min(len(groups), REQUESTS_AT_ONCE), thread_name_prefix="lance_duck-fetch") as pool:
            for _ in pool.map(read, groups):
                pass
    else:
        for places in groups:
            read(places)
    return pieces


def read_first(ranges: Sequence[ByteRange], request: Request[T]) -> Request[T]:
    """Fetch ranges in one round, then run a request. Ranges within the fetched ones are not fetched again."""
    pieces = yield list(ranges)
    buffers = [(r, r.offset + r.size, data) for r, data in zip(ranges, pieces, strict=True)]

    def find(part: ByteRange) -> Bytes | None:
        for r, end, data in buffers:
            if r.source is part.source and r.offset <= part.offset and part.offset + part.size <= end:
                return data[part.offset - r.offset : part.offset - r.offset + part.size]
        return None

    try:
        parts = next(request)
        while True:
            answers = [find(part) for part in parts]
            gaps = [place for place, data in enumerate(answers) if data is None]
            if gaps:
                for place, data in zip(gaps, (yield [parts[place] for place in gaps]), strict=True):
                    answers[place] = data
            parts = request.send(answers)  # type: ignore[arg-type]
    except StopIteration as stop:
        result: T = stop.value
        return result


def gather(requests: Sequence[Request[T]]) -> Request[list[T]]:
    """Run several requests in rounds. Each round fetches the bytes for all of them together."""
    if len(requests) == 1:
        return [(yield from requests[0])]
    results: list[Any] = [None] * len(requests)
    pending: list[tuple[int, Request[T], list[ByteRange]]] = []

    def step(i: int, request: Request[T], data: list[Bytes] | None) -> None:
        nonlocal pending
        try:
            pending.append((i, request, next(request) if data is None else request.send(data)))
        except StopIteration as stop:
            results[i] = stop.value

    for i, request in enumerate(requests):
        step(i, request, None)
    while pending:
        now, pending = pending, []
        pieces = yield [r for _, _, ranges in now for r in ranges]
        at = 0
        for i, request, ranges in now:
            step(i, request, pieces[at : at + len(ranges)])
            at += len(ranges)
    return results
