"""DatasetOptimizer, and the methods of a dataset for compaction, cleanup and validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.maintenance.auto_cleanup import INTERVAL, OLDER_THAN, RETAIN
from lance_duck.maintenance.options import CompactionArguments
from lance_duck.optimize.compaction import CompactionMetrics, compact_table
from lance_duck.verbs.versions.config import ConfigChanges

if TYPE_CHECKING:
    from lance_duck.maintenance import cleanup, cleanup_plan
    from lance_duck.maintenance.validation import files, losses
    from lance_duck.maintenance.validation import validate as validation
    from lance_duck.verbs import change
    from lance_duck.verbs.indexes import kinds
    from lance_duck.verbs.indexes import optimize as index_upkeep
    from lance_duck.verbs.versions import repair as repairs
else:
    cleanup, cleanup_plan = lazy.modules(globals(), "lance_duck.maintenance", "cleanup", "cleanup_plan")
    files, losses, validation = lazy.modules(
        globals(), "lance_duck.maintenance.validation", "files", "losses", "validate"
    )
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    kinds, index_upkeep = lazy.modules(globals(), "lance_duck.verbs.indexes", "kinds", "optimize")
    repairs = lazy.modules(globals(), "lance_duck.verbs.versions", "repair")


class AutoCleanupConfig(TypedDict):
    """Settings of the automatic cleanup of a table.

    Attributes:
        interval: Number of versions from one cleanup to the next.
        older_than_seconds: Age of the versions that are removed, in seconds.
    """

    interval: int
    older_than_seconds: int


@checked_calls
class DatasetOptimizer:
    """Compaction, optimization of indexes, and automatic cleanup of a table.

    Args:
        dataset: The table; it moves to the version that each change makes.
    """

    def __init__(self, dataset: ConfigChanges) -> None:
        self._dataset = dataset

    def compact_files(
        self,
        *,
        progress: Callable[[int, int], Any] | None = None,
        transaction_properties: Mapping[str, str] | None = None,
        **options: Unpack[CompactionArguments],
    ) -> CompactionMetrics:
        """Join small fragments with their neighbours, and drop the values of deleted rows and dropped columns.

        Args:
            progress: Called with the number of groups written so far, and of all groups.
            transaction_properties: Texts by name that are stored with the transaction.
            options: See `lance_duck.maintenance.options.CompactionOptions`; defaults come from the config of the table
                ("lance.compaction.…").

        Raises:
            InvalidInputError: An option is unknown or invalid.
            RetryableError: Each attempt conflicted with another writer.
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
        """Index the rows that no segment covers; if all rows are covered, there is no new version.

        Each index gets one new segment with these rows. Segments with outdated entries of these rows, because values
        changed in place or rows moved, are always merged into it. A vector index whose segments would all be merged is
        rebuilt if it has at least twice as many vectors as it was trained with, and its partitions are uneven, or too
        large (unless the user set their number); never if the user gave its centroids.

        Args:
            num_indices_to_merge: Number of the newest segments to merge into the new one (0 for none, which writes
                least); None for those that are small, or not much larger than the new rows.
            index_names: Names of the indexes; None for all.
            retrain: Build the indexes anew, of all rows; also replaces broken segments.
            memory_limit: Bytes, or a text such as "256MB", that making an index may hold, about; None for 1 GiB.
            progress: Called with the number of rows read so far, and of all rows to read; True: print them to stderr.
            commit_message: Message that is stored with the transaction.
            transaction_properties: Texts by name that are stored with the transaction.

        Warns:
            IndexWarning: An index is left alone, because it is broken or of an unsupported kind.

        Raises:
            IndexNotFoundError: There is no index of a name.
            CommitConflictError: Other changes were committed first each time, or one that conflicts with this one.
        """
        told = kinds.progress_of(progress)
        options = index_upkeep.OptimizeOptions(num_indices_to_merge, index_names, retrain, told, memory_limit)
        properties = change.transaction_properties(commit_message, transaction_properties)
        self._dataset.handle.move_to(index_upkeep.optimize_indices(self._dataset.handle.base, options, properties)[0])

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig) -> None:
        """Enable automatic cleanup of the table: see `lance_duck.maintenance.auto_cleanup`.

        Raises:
            InvalidInputError: One of the two numbers is missing.
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


@checked_calls
class Upkeep(ConfigChanges):
    """Methods of a dataset for compaction, cleanup and validation."""

    @property
    def optimize(self) -> DatasetOptimizer:
        """Compaction, optimization of indexes, and automatic cleanup."""
        return DatasetOptimizer(self)

    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        delete_concurrency: int | None = None,
        dry_run: bool = False,
    ) -> cleanup.CleanupStats:
        """Remove old versions, and the files that only they refer to.

        The newest version, that of this handle, tagged ones, and those that branches were made from stay.

        Args:
            older_than: Age of the versions to remove; 14 days if neither `retain_versions` nor `versions` is given.
            retain_versions: Number of the newest versions that stay.
            delete_unverified: Also remove files less than a week old that no version refers to. Only if no other
                process changes the table: such a file may belong to a change in progress.
            error_if_tagged_old_versions: Whether a tagged version to remove is an error; else it stays.
            delete_rate_limit: Files to delete per second at most; None for no limit.
            versions: The only versions to remove.
            delete_concurrency: Checked, but without effect: the store decides how many deletions run at a time.
            dry_run: Remove nothing, and return what would be removed.

        Raises:
            ReferencedError: A tagged version would be removed.
        """
        policy = cleanup_plan.CleanupPolicy(
            older_than=older_than,
            retain_versions=retain_versions,
            versions=versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )
        if dry_run:
            return cleanup.explain_cleanup(self.handle.snapshot, policy, None).stats
        return cleanup.cleanup(self.handle.snapshot, policy, delete_rate_limit, delete_concurrency)

    def explain_cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> cleanup.CleanupExplanation:
        """Describe what `cleanup_old_versions` would remove, with the same arguments; nothing is removed.

        Args:
            older_than: See `cleanup_old_versions`.
            retain_versions: See `cleanup_old_versions`.
            delete_unverified: See `cleanup_old_versions`.
            error_if_tagged_old_versions: See `cleanup_old_versions`.
            delete_rate_limit: Without effect: nothing is deleted.
            versions: See `cleanup_old_versions`.
            include_files: List the files that would be removed.
            max_files: Files to list at most.

        Raises:
            InvalidInputError: A number is not positive.
        """
        if max_files <= 0:
            raise InvalidInputError("max_files must be positive", where="cleanup", found=max_files)
        policy = cleanup_plan.CleanupPolicy(
            older_than=older_than,
            retain_versions=retain_versions,
            versions=versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )
        return cleanup.explain_cleanup(self.handle.snapshot, policy, max_files if include_files else None)

    def validate(self) -> None:
        """Read everything of this version: manifest, deletion files, row ids, indices, and every value.

        Raises:
            CorruptError: There are problems, which it names; `find_problems` returns them as a list.
        """
        validation.validate(self.handle.snapshot)

    def check_files(self) -> list[files.FileCheck]:
        """Compare all files of this version with their checksums, whatever the storage options.

        Returns:
            For each file its path, kind, bytes, and whether it is "sound", "damaged" or has no checksums ("none"); also
            for tags, branches, and sidecars of blobs that have digests.
        """
        return files.check_files(self.handle.snapshot)

    def repair(self, *, dry_run: bool = False, restore_deleted: bool = False) -> losses.Losses:
        """Remove what cannot be read: rows with a lost value, and damaged index segments.

        Rows are lost by chunks of pages, or of overlays; older versions still have them. Indexes can be built anew.

        Args:
            dry_run: Commit nothing.
            restore_deleted: Restore all rows of fragments whose deletion file cannot be read.

        Returns:
            The losses: what cannot be read in the version of this handle.

        Raises:
            CorruptError: A deletion file cannot be read, and `restore_deleted` is not set.
            InvalidInputError: Checksums are not compared (`storage_options={"checksums": "false"}`).
            UnsupportedError: A file cannot be read by this package, and may be sound.
            RetryableError: Another change was committed first.
        """
        found = losses.find_losses(self.handle.snapshot)
        if found.deletions and not restore_deleted and not dry_run:
            raise CorruptError(
                f"the deletion files of fragments {list(found.deletions)} cannot be read",
                where=self.handle.uri,
                remedy="restore an older version, or repair(restore_deleted=True): their deleted rows come back",
            )
        if found and not dry_run:
            after = repairs.repair(self.handle.snapshot, found.rows, found.deletions, found.segments, found.overlays)
            self.handle.move_to(after)
        return found

    def find_problems(self) -> list[validation.Problem]:
        """Read everything of this version, as `validate` does, and return its problems."""
        return validation.find_problems(self.handle.snapshot)
