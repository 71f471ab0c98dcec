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
    from lance_duck import commit as commits
    from lance_duck.maintenance import cleanup, cleanup_plan
    from lance_duck.maintenance.validation import files, losses
    from lance_duck.maintenance.validation import validate as validation
    from lance_duck.optimize import optimizer
    from lance_duck.verbs.versions import repair as repairs
else:
    commits = lazy.modules(globals(), "lance_duck", "commit")
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
        """Compaction, index optimization and automatic cleanup."""
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

        The newest version, this handle's version, tagged versions and branch points are kept.

        Args:
            older_than: Minimum age of removed versions. Defaults to 14 days if neither `retain_versions` nor `versions`
                is given.
            retain_versions: Number of newest versions to keep.
            delete_unverified: Also remove unreferenced files that are less than a week old. Use this only if no other
                process changes the table: a new file may belong to a change in progress.
            error_if_tagged_old_versions: Whether to raise an error for a tagged version. If False, tagged versions are
                kept.
            delete_rate_limit: Maximum number of files deleted per second. Unlimited by default.
            versions: Remove only these versions.
            delete_concurrency: Validated, but without effect: the store decides how many deletions run concurrently.
            dry_run: Only return what would be removed.

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
            return cleanup.explain_cleanup(self.handle.main, policy, None).stats
        return cleanup.cleanup(self.handle.main, policy, delete_rate_limit, delete_concurrency)

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
        """List the versions and files that `cleanup_old_versions` would remove, without removing them.

        Args:
            older_than: See `cleanup_old_versions`.
            retain_versions: See `cleanup_old_versions`.
            delete_unverified: See `cleanup_old_versions`.
            error_if_tagged_old_versions: See `cleanup_old_versions`.
            delete_rate_limit: Without effect: nothing is deleted.
            versions: See `cleanup_old_versions`.
            include_files: Whether to list the files that would be removed.
            max_files: Maximum number of files to list.

        Raises:
            InvalidInputError: A number is not positive, or `older_than` is negative.
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
        return cleanup.explain_cleanup(self.handle.main, policy, max_files if include_files else None)

    def validate(self) -> None:
        """Read all data of this version: manifest, deletion files, row ids, indexes, and every value.

        Raises:
            CorruptError: The version is damaged. The message lists the problems: see `find_problems`.
        """
        validation.validate(self.handle.main)

    def check_files(self) -> list[files.FileCheck]:
        """Compare all files of this version with their checksums, regardless of the storage options.

        Returns:
            Path, kind, size in bytes, and status of each file: "sound", "damaged", or "none" if the file does not have
            checksums. Includes tags, branches, and blob sidecars that have digests.
        """
        return files.check_files(self.handle.main)

    def repair(self, *, dry_run: bool = False, restore_deleted: bool = False) -> losses.Losses:
        """Remove unreadable data: rows with a lost value, and damaged index segments.

        One damaged byte makes all rows in its chunk unreadable. Older versions still list the removed rows. Indexes can
        be rebuilt.

        Also names the items of lists `item`, if they have the name `l` from DuckDB. pylance then uses indexes of these
        lists. No file is rewritten.

        Args:
            dry_run: Only return the losses, without a commit.
            restore_deleted: Restore all rows of fragments whose deletion file cannot be read.

        Returns:
            The losses: the data of this handle's version that cannot be read. `renamed` lists columns whose list items
                were renamed.

        Raises:
            CorruptError: A deletion file cannot be read, and `restore_deleted` is not set.
            InvalidInputError: Checksums are disabled (`storage_options={"checksums": "false"}`).
            UnsupportedError: This package does not support a file. The file may be intact.
            RetryableError: Another change was committed first.
        """
        found = losses.find_losses(self.handle.main)
        if found.deletions and not restore_deleted and not dry_run:
            raise CorruptError(
                f"the deletion files of fragments {list(found.deletions)} cannot be read",
                where=self.handle.uri,
                remedy="restore an older version, or repair(restore_deleted=True): their deleted rows come back",
            )
        if found and not dry_run:
            after = repairs.repair(self.handle.main, found.rows, found.deletions, found.segments, found.overlays)
            self.handle.move_to(after)
        if found.renamed and not dry_run:
            self.handle.move_to(commits.run_again(self.handle.main, repairs.rename_items))
        return found

    def find_problems(self) -> list[validation.Problem]:
        """Read all data of this version like `validate`, and return its problems."""
        return validation.find_problems(self.handle.main)
