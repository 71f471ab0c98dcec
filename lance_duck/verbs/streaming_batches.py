"""Batches of streams that are committed once: a version records the batch that it came from.

It does so in the properties of its transaction, by the names that others use, too:

    lance.streaming.queryId     the stream
    lance.streaming.epochId     number of the batch

and, because versions are cleaned up, in the config of the table, in the same commit:

    lance.streaming.epoch.{stream}     number of the last batch that landed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from lance_duck.commit.manifest_builder import ManifestDraft
from lance_duck.errors import IncompatibleError, InvalidInputError, NotFoundError
from lance_duck.snapshot import Snapshot
from lance_duck.wire import flags

STREAM: Final = "lance.streaming.queryId"
BATCH: Final = "lance.streaming.epochId"
LAST: Final = "lance.streaming.epoch."
LOOKBACK: Final = 100
"""Versions that are searched for the last batch of a stream, if the config of the table does not have it."""


@dataclass(frozen=True)
class StreamBatch:
    """A batch of a stream. Batches of a stream are numbered upwards, and committed in that order.

    Attributes:
        stream: Name of the stream, the same after each restart.
        number: Number of the batch, from 0.

    Raises:
        InvalidInputError: The name is empty, or the number is below 0.
    """

    stream: str
    number: int

    def __post_init__(self) -> None:
        if not self.stream or self.number < 0:
            raise InvalidInputError(
                "batch of a stream", expected="a name and a number from 0", found=f"{self.stream!r}, {self.number}"
            )

    @property
    def properties(self) -> dict[str, str]:
        """Properties of the transaction of the batch."""
        return {STREAM: self.stream, BATCH: str(self.number)}

    @property
    def config(self) -> dict[str, str]:
        """Config of the table after the batch."""
        return {LAST + self.stream: str(self.number)}

    def has_landed(self, snapshot: Snapshot) -> bool:
        """Return whether a version contains the batch; searches earlier transactions if the config does not tell."""
        last = snapshot.config.get(LAST + self.stream)
        return (_last_of(self.stream, snapshot) if last is None else _number(last)) >= self.number

    def amend(self, base: Snapshot, draft: ManifestDraft, report_file: Callable[[str], None]) -> None:
        """Record the batch in the config of the next version; an `amend` of `commit`."""
        for key, value in self.config.items():
            draft.manifest.config[key] = value
        draft.manifest.writer_feature_flags |= flags.TABLE_CONFIG

    def guard(self, newest: Snapshot) -> None:
        """Raise IncompatibleError for a version that contains the batch already; a `guard` of `commit`."""
        if self.has_landed(newest):
            raise IncompatibleError(
                f"batch {self.number} of stream {self.stream} has been committed already", where=newest.uri
            )


def _last_of(stream: str, snapshot: Snapshot) -> int:
    for version in range(snapshot.version, max(snapshot.version - LOOKBACK, 0), -1):
        try:
            transaction = snapshot.checkout(version).transaction()
        except NotFoundError:
            break
        properties: Mapping[str, str] = {} if transaction is None else transaction.transaction_properties
        if properties.get(STREAM) == stream:
            return _number(properties.get(BATCH, ""))
    return -1


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1
