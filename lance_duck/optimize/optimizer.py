"""DatasetOptimizer: compaction, index optimization and automatic cleanup, as `LanceDataset.optimize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from lance_duck import lazy
from lance_duck.arguments import byte_count, checked_calls
from lance_duck.errors import InvalidInputError
from lance_duck.maintenance.auto_cleanup import INTERVAL, OLDER_THAN, RETAIN
from lance_duck.maintenance.options import CompactionArguments
from lance_duck.optimize.compaction import CompactionMetrics, compact_table
from lance_duck.verbs.versions.config import ConfigChanges

if TYPE_CHECKING:
    from lance_duck.optimize import log_compaction
    from lance_duck.verbs import change
    from lance_duck.verbs.indexes import kinds
    from lance_duck.verbs.indexes import optimize as index_upkeep
else:
    log_compaction = lazy.modules(globals(), "lance_duck.optimize", "log_compaction")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    kinds, index_upkeep = lazy.modules(globals(), "lance_duck.verbs.indexes", "kinds", "optimize")


class AutoCleanupConfig(TypedDict):
    """Settings of a table's automatic cleanup.

    Attributes:
        interval: Number of versions between cleanups.
        older_than_seconds: Minimum age of removed versions, in seconds.
    """

    interval: int
    older_than_seconds: int


@checked_calls
class DatasetOptimizer:
    """Compaction, index optimization and automatic cleanup of a table.

    Args:
        dataset: The table. Each change moves it to the new version.
    """

    def __init__(self, dataset: ConfigChanges) -> None:
        self._dataset = dataset

    def __call__(self) -> CompactionMetrics:
        """Compact the files, and index all rows: `compact_files` and `optimize_indices`. LanceDB has this call.

        Old versions are kept. `LanceDataset.cleanup_old_versions` removes them.
        """
        metrics = self.compact_files()
        self.optimize_indices()
        return metrics

    def compact_files(
        self,
        *,
        progress: Callable[[int, int], Any] | None = None,
        transaction_properties: Mapping[str, str] | None = None,
        **options: Unpack[CompactionArguments],
    ) -> CompactionMetrics:
        """Merge small adjacent fragments, and remove deleted rows and dropped columns from the files.

        Args:
            progress: Called with the number of groups written so far and the total.
            transaction_properties: Key-value pairs of strings to store with the transaction.
            options: See `lance_duck.maintenance.options.CompactionOptions`. The table config ("lance.compaction.…")
                supplies defaults.

        Raises:
            InvalidInputError: An option is unknown or invalid.
            RetryableError: All attempts conflicted with other writers.
        """
        return compact_table(self._dataset, options, transaction_properties, progress)

    def optimize_indices(
        self,
        *,
        num_indices_to_merge: int | None = None,
        index_names: Sequence[str] | None = None,
        retrain: bool = False,
        memory_limit: int | str | None = None,
        progress: Callable[[int, int], Any] | bool | None = None,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Index the rows that no segment covers.

        If all rows are covered, and segments are neither merged nor rebuilt, no new version is created.

        Each index gets one new segment with the uncovered rows. Segments with outdated entries for these rows are
        always merged into the new segment. Entries become outdated when values change in place or rows move.

        A vector index is rebuilt if three conditions hold. All its segments would be merged. It has at least twice as
        many vectors as at its last training. Its partitions are uneven, or they are too large and their number was not
        specified by the user. An index with user-specified centroids is never rebuilt.

        Args:
            num_indices_to_merge: Number of newest segments to merge into the new segment. With 0, only the new rows are
                written. By default, small segments and segments that are not much larger than the new rows are merged.
            index_names: Names of the indexes. Defaults to all indexes.
            retrain: Rebuild the indexes from all rows. This also replaces corrupt segments.
            memory_limit: Approximate memory limit for building an index, in bytes or as a string such as "256MB".
                Defaults to 1 GiB.
            progress: Called with the number of rows read so far and the total. True prints both numbers to stderr.
            commit_message: Message to store with the transaction.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Warns:
            IndexWarning: An index is skipped because it is corrupt or its kind is not supported.

        Raises:
            IndexNotFoundError: An index does not exist.
            CommitConflictError: A conflicting change was committed first, or all retries lost the race.
        """
        told = kinds.progress_of(progress)
        options = index_upkeep.OptimizeOptions(num_indices_to_merge, index_names, retrain, told, memory_limit)
        properties = change.transaction_properties(commit_message, transaction_properties)
        self._dataset.handle.move_to(index_upkeep.optimize_indices(self._dataset.handle.base, options, properties)[0])

    def compact_log(
        self,
        *,
        memory_limit: int | str | None = None,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> log_compaction.LogCompactionMetrics:
        """Merge the SSTables of LanceDB's write-ahead log (MemWAL) into the main table, as one version.

        Newer rows replace rows with the same primary key, and deleted keys are deleted. Rows that are not in an SSTable
        yet stay in the log. The log's files do not change, and its writers may go on writing. Without SSTables, no new
        version is created.

        Args:
            memory_limit: Approximate memory limit for rows of the log, in bytes or as a string such as "256MB". More
                rows are spilled to a temporary file.
            commit_message: Message to store with the transaction.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Raises:
            IncompatibleError: Another writer has merged the same rows, or removed the log.
            CommitConflictError: All retries lost the race.
            CorruptError: A file of the log is corrupt.
            UnsupportedError: A primary key column is nested.
        """
        limit = None if memory_limit is None else byte_count(memory_limit, "memory_limit")
        properties = change.transaction_properties(commit_message, transaction_properties)
        after, metrics = log_compaction.compact_log(self._dataset.handle.base, properties, limit)
        self._dataset.handle.move_to(after)
        return metrics

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig) -> None:
        """Enable automatic cleanup of the table: see `lance_duck.maintenance.auto_cleanup`.

        Raises:
            InvalidInputError: One of the two settings is missing, or is not a whole number.
        """
        try:
            interval = int(auto_cleanup_config["interval"])
            seconds = int(auto_cleanup_config["older_than_seconds"])
        except (KeyError, TypeError, ValueError, IndexError):
            raise InvalidInputError(
                "auto_cleanup_config", expected="interval and older_than_seconds", found=repr(auto_cleanup_config)
            ) from None
        self._dataset.update_config({INTERVAL: str(interval), OLDER_THAN: f"{seconds}s"})

    def disable_auto_cleanup(self) -> None:
        """Disable automatic cleanup of the table."""
        self._dataset.delete_config_keys([INTERVAL, OLDER_THAN, RETAIN])
