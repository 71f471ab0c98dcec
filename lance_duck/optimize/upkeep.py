"""The methods of a dataset for compaction, cleanup and validation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.verbs.versions.config import ConfigChanges

if TYPE_CHECKING:
    from lance_duck.maintenance import cleanup, cleanup_plan
    from lance_duck.maintenance.validation import files, losses
    from lance_duck.maintenance.validation import validate as validation
    from lance_duck.optimize import optimizer
    from lance_duck.verbs.versions import repair as repairs
else:
    cleanup, cleanup_plan = lazy.modules(globals(), "lance_duck.maintenance", "cleanup", "cleanup_plan")
    files, losses, validation = lazy.modules(
        globals(), "lance_duck.maintenance.validation", "files", "losses", "validate"
    )
    optimizer = lazy.modules(globals(), "lance_duck.optimize", "optimizer")
    repairs = lazy.modules(globals(), "lance_duck.verbs.versions", "repair")


@checked_calls
class Upkeep(ConfigChanges):
    """Methods of a dataset for compaction, cleanup and validation."""

    @property
    def optimize(self) -> optimizer.DatasetOptimizer:
        """Compaction, optimization of indexes, and automatic cleanup."""
        return optimizer.DatasetOptimizer(self)

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
