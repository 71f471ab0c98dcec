"""Exactly-once commits of stream batches: each version records the batch that it came from.

The stream and the batch number are stored in the transaction properties, under the keys that other Lance writers use:
    lance.streaming.queryId     the stream
    lance.streaming.epochId     batch number
The same commit also stores the batch number in the table config, because old versions are cleaned up:

    lance.streaming.epoch.{stream}     number of the last committed batch
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from lance_duck.commit.manifest_draft import ManifestDraft
from lance_duck.errors import IncompatibleError, InvalidInputError, NotFoundError
from lance_duck.snapshot import Snapshot
from lance_duck.wire import flags

STREAM: Final = "lance.streaming.queryId"
BATCH: Final = "lance.streaming.epochId"
LAST: Final = "lance.streaming.epoch."
LOOKBACK: Final = 100
"""Number of versions searched for the last batch of a stream, if the table config does not store it."""


@dataclass(frozen=True)
class StreamBatch:
    """A batch of a stream. Batch numbers increase, and batches are committed in that order.

    Attributes:
        stream: Name of the stream. It must stay the same after restarts.
        number: Number of the batch, from 0.

    Raises:
        InvalidInputError: The name is empty, or the number is negative.
    """

    stream: str
    number: int

    def __post_init__(self) -> None:
        if not self.stream or self.number < 0:
            raise InvalidInputError(
                "invalid batch of a stream",
                expected="a name and a number from 0",
                found=f"{self.stream!r}, {self.number}",
            )

    @property
    def properties(self) -> dict[str, str]:
        """Transaction properties of the batch."""
        return {STREAM: self.stream, BATCH: str(self.number)}

    @property
    def config(self) -> dict[str, str]:
        """Table config after the batch."""
        return {LAST + self.stream: str(self.number)}

    def has_landed(self, snapshot: Snapshot) -> bool:
        """Return whether a version contains the batch. Without a number in the config, transactions are searched."""
        last = snapshot.config.get(LAST + self.stream)
        return (_last_of(self.stream, snapshot) if last is None else _number(last)) >= self.number

    def amend(self, base: Snapshot, draft: ManifestDraft, report_file: Callable[[str], None]) -> None:
        """Record the batch in the config of the next version. Used as `amend` of `commit`."""
        for key, value in self.config.items():
            draft.manifest.config[key] = value
        draft.manifest.writer_feature_flags |= flags.TABLE_CONFIG

    def guard(self, newest: Snapshot) -> None:
        """Raise IncompatibleError if a version already contains the batch. Used as `guard` of `commit`."""
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
