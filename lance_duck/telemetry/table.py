"""Counters, gauges and histograms with labels. They are thread-safe, and empty in a forked child.

One lock guards all values. It is re-entrant, because a garbage collection may count something while it is held.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of histogram buckets for durations."""

_lock = threading.RLock()


class Metric(NamedTuple):
    """A value of a metric.

    Attributes:
        name: The name. A histogram has values with the suffixes `_bucket`, `_sum` and `_count`.
        kind: "counter", "gauge" or "histogram".
        labels: Labels and their values.
        value: The value.
    """

    name: str
    kind: str
    labels: dict[str, str]
    value: float


class Instrument:
    """A metric with one value for each combination of labels.

    Args:
        name: Name of the metric.
        about: Description in one sentence.
        labels: Names of the labels. Methods take their values in this order.
        fixed: Labels that always have the same value.
    """

    kind = ""

    def __init__(
        self, name: str, about: str, labels: Sequence[str] = (), fixed: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.about = about
        self.labels = tuple(labels)
        self.fixed = dict(fixed or {})

    def samples(self) -> list[Metric]:
        """Return all values, in order of their labels."""
        raise NotImplementedError

    def forget(self) -> None:
        """Remove all values."""
        raise NotImplementedError

    def _named(self, values: Sequence[str]) -> dict[str, str]:
        return {**self.fixed, **dict(zip(self.labels, values, strict=True))}


class _LabelledNumber(Instrument):
    """A metric with one number for each combination of labels. Without labels, the number is 0 at first."""

    def __init__(
        self, name: str, about: str, labels: Sequence[str] = (), fixed: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name, about, labels, fixed)
        self._values: dict[tuple[str, ...], float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Add a number to the value."""
        with _lock:
            self._values[labels] = self._values.get(labels, 0) + by

    def samples(self) -> list[Metric]:
        """See `Instrument.samples`."""
        with _lock:
            values = dict(self._values)
        if not self.labels:
            values.setdefault((), 0)
        return [Metric(self.name, self.kind, self._named(labels), values[labels]) for labels in sorted(values)]

    def forget(self) -> None:
        """See `Instrument.forget`."""
        self._values = {}


class Counter(_LabelledNumber):
    """A number that only grows."""

    kind = "counter"


class Gauge(_LabelledNumber):
    """A number that grows and shrinks."""

    kind = "gauge"

    def set(self, *labels: str, to: float) -> None:
        """Replace the value."""
        with _lock:
            self._values[labels] = to


class PresenceGauge(Instrument):
    """The number of things that are present, without labels. Adding and removing one needs no lock."""

    kind = "gauge"

    def __init__(self, name: str, about: str) -> None:
        super().__init__(name, about)
        self._things: set[int] = set()

    def add(self, thing: object) -> None:
        """Count a thing until `remove`, which its owner calls while the thing exists."""
        self._things.add(id(thing))

    def remove(self, thing: object) -> None:
        """Do not count a thing any more."""
        self._things.discard(id(thing))

    def samples(self) -> list[Metric]:
        """See `Instrument.samples`."""
        return [Metric(self.name, self.kind, self._named(()), len(self._things))]

    def forget(self) -> None:
        """See `Instrument.forget`."""
        self._things = set()


class Histogram(Instrument):
    """The distribution of numbers: how many numbers are at most as large as each bound, their sum, and their count."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        about: str,
        labels: Sequence[str] = (),
        fixed: Mapping[str, str] | None = None,
        *,
        bounds: Sequence[float] = SECONDS,
    ) -> None:
        super().__init__(name, about, labels, fixed)
        self._bounds = tuple(bounds)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, number: float, *labels: str) -> None:
        """Add a number to the distribution."""
        place = bisect_left(self._bounds, number)
        with _lock:
            counts = self._counts.get(labels)
            if counts is None:
                counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            counts[place] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + number

    def samples(self) -> list[Metric]:
        """See `Instrument.samples`. The counts of the buckets are cumulative, as in Prometheus."""
        with _lock:
            values = {labels: (list(counts), self._sums.get(labels, 0.0)) for labels, counts in self._counts.items()}
        if not self.labels:
            values.setdefault((), ([0] * (len(self._bounds) + 1), 0.0))
        return [metric for labels in sorted(values) for metric in self._of(self._named(labels), *values[labels])]

    def _of(self, labels: dict[str, str], counts: list[int], total: float) -> Iterator[Metric]:
        below = 0
        for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
            below += count
            yield Metric(f"{self.name}_bucket", self.kind, {**labels, "le": bound_text(bound)}, below)
        yield Metric(f"{self.name}_sum", self.kind, labels, total)
        yield Metric(f"{self.name}_count", self.kind, labels, below)

    def forget(self) -> None:
        """See `Instrument.forget`."""
        self._counts, self._sums = {}, {}


def bound_text(bound: float) -> str:
    """Return the upper bound of a bucket as Prometheus writes it."""
    return "+Inf" if bound == float("inf") else repr(bound)


def renew_lock() -> None:
    """Replace the lock in a forked child. A thread that does not exist there may hold it."""
    global _lock
    _lock = threading.RLock()
