"""Counts commits by their outcome, and shows them to an observer."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Final

from lance_duck.errors import AlreadyExistsError, CommitConflictError
from lance_duck.redact import shown
from lance_duck.telemetry.metrics import COMMIT_CONFLICTS, COMMITS
from lance_duck.telemetry.observing import observed
from lance_duck.wire.pb import transaction_pb2

_LOG: Final = logging.getLogger(__name__)
_LOST: Final = (CommitConflictError, AlreadyExistsError)


class CountedCommit:
    """The context of one commit with all its attempts. The outcome is "committed", "conflict" or "failed".

    Args:
        operation: Name of the operation, such as "Append".
        uri: URI of the table.
    """

    def __init__(self, operation: str, uri: str) -> None:
        self._operation = operation
        self._uri = uri
        self._observed = observed("COMMIT", uri)

    def __enter__(self) -> None:
        self._observed.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._observed.__exit__(kind, error, traceback)
        outcome = "committed" if error is None else "conflict" if isinstance(error, _LOST) else "failed"
        COMMITS.add(self._operation, outcome)
        if outcome == "conflict":
            COMMIT_CONFLICTS.add()
            _LOG.debug("%s of %s lost to another writer: %s", self._operation, shown(self._uri), shown(error))


def note_lost_race(uri: str) -> None:
    """Count an attempt that lost a race. Another attempt follows."""
    COMMIT_CONFLICTS.add()
    _LOG.debug("a commit to %s lost a race, and is repeated", shown(uri))


def operation_name(transaction: transaction_pb2.Transaction) -> str:
    """Return the name of an operation, such as "CreateIndex"."""
    return (transaction.WhichOneof("operation") or "").title().replace("_", "")
