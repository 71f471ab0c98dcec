"""The metrics of the package. Requests have the names and labels of pylance, so that one dashboard shows both."""

from __future__ import annotations

from typing import Final

from lance_duck import forks
from lance_duck.telemetry.table import Counter, Gauge, Histogram, Instrument, Metric, PresenceGauge, renew_lock

_REQUEST: Final = ("operation", "base")
_STATUS: Final = ("status", "base")
_LIBRARY: Final = {"library": "lance_duck"}

REQUESTS: Final = Counter(
    "lance_object_store_requests_total", "Requests to object stores, by operation and scheme.", _REQUEST, _LIBRARY
)
REQUEST_SECONDS: Final = Histogram(
    "lance_object_store_request_duration_seconds",
    "Duration of calls to object stores in seconds, by operation and scheme. A call may send several requests.",
    _REQUEST,
    _LIBRARY,
)
REQUEST_BYTES: Final = Counter(
    "lance_object_store_request_bytes_total",
    "Bytes transferred by requests to object stores, by operation and scheme.",
    _REQUEST,
    _LIBRARY,
)
REQUESTS_IN_FLIGHT: Final = Gauge(
    "lance_object_store_in_flight_requests",
    "Requests to object stores that have no response yet, by operation and scheme.",
    _REQUEST,
    _LIBRARY,
)
REQUEST_ERRORS: Final = Counter(
    "lance_object_store_errors_total", "Failed requests to object stores, by operation and scheme.", _REQUEST, _LIBRARY
)
RETRYABLE_RESPONSES: Final = Counter(
    "lance_object_store_retryable_responses_total",
    "Requests that ended with the status 5xx, 429 or 408 after all retries, by status and scheme.",
    _STATUS,
    _LIBRARY,
)
THROTTLES: Final = Counter(
    "lance_object_store_throttle_total",
    "Requests that ended with the status 429 or 503 after all retries, by status and scheme.",
    _STATUS,
    _LIBRARY,
)

STATEMENTS: Final = Counter(
    "lance_duck_statements_total", "Finished SQL statements, by first word and outcome.", ("kind", "outcome")
)
STATEMENT_SECONDS: Final = Histogram(
    "lance_duck_statement_seconds", "Duration of SQL statements in seconds, with the reading of their rows."
)
ROWS_RETURNED: Final = Counter(
    "lance_duck_rows_returned_total", "Rows of results that were returned as a whole. Streamed rows are not counted."
)
BYTES_READ: Final = Counter(
    "lance_duck_bytes_read_total",
    "Bytes read, by source. Local files that are mapped into memory are not counted.",
    ("source",),
)
INDEX_USES: Final = Counter("lance_duck_index_uses_total", "Searches of indexes, by kind of index.", ("kind",))
COMMITS: Final = Counter(
    "lance_duck_commits_total", "Finished commits, by operation and outcome.", ("operation", "outcome")
)
COMMIT_CONFLICTS: Final = Counter(
    "lance_duck_commit_conflicts_total", "Races that commits lost to other writers, and refused changes."
)
RUNNING_STATEMENTS: Final = PresenceGauge("lance_duck_running_statements", "SQL statements that are running.")
QUEUED_STATEMENTS: Final = Gauge("lance_duck_queued_statements", "Requests that wait for a slot of a server.")
HTTP_REQUEST_SECONDS: Final = Histogram(
    "lance_duck_http_request_duration_seconds",
    "Duration of requests to a server in seconds, by method, path and status.",
    ("method", "route", "status"),
)
CACHE_HITS: Final = Counter(
    "lance_duck_cache_hits_total",
    "Values found in caches: index and column data in memory, blocks of objects on disk.",
    ("cache",),
)
CACHE_MISSES: Final = Counter(
    "lance_duck_cache_misses_total",
    "Values not found in caches: index and column data in memory, blocks of objects on disk.",
    ("cache",),
)
CACHE_EVICTED_BYTES: Final = Counter(
    "lance_duck_cache_evicted_bytes_total", "Bytes that caches dropped to keep their limits.", ("cache",)
)


INSTRUMENTS: Final = tuple(each for each in list(vars().values()) if isinstance(each, Instrument))
"""All metrics, in order of their definition."""


def metrics() -> list[Metric]:
    """Return the metrics of this process since its start.

    The result is a list of named tuples: `Metric(name, kind, labels, value)`. A histogram has one tuple for each
    bucket, one for the sum and one for the count. `FROM lance_metrics()` returns the same rows in SQL.
    """
    return [metric for instrument in INSTRUMENTS for metric in instrument.samples()]


def _begin_child() -> None:
    """Start at zero in a forked child, because the parent still reports its own values."""
    renew_lock()
    for instrument in INSTRUMENTS:
        instrument.forget()


forks.after_fork(_begin_child)
