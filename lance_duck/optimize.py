"""DatasetOptimizer, Compaction and Upkeep: the public interface of compaction, cleanup and validation.

A compaction runs in one call, or as a plan of tasks that run anywhere and are committed together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.maintenance.auto_cleanup import INTERVAL, OLDER_THAN, RETAIN
from lance_duck.maintenance.options import CompactionArguments, CompactionOptions, compaction_options
from lance_duck.snapshot.garbage import uncollected
from lance_duck.verbs.handle import TableMethods
from lance_duck.verbs.versions.config import ConfigChanges

if TYPE_CHECKING:
    from lance_duck.index import reuse_write
    from lance_duck.maintenance import cleanup, cleanup_plan, compact
    from lance_duck.maintenance import rewrite as rewriting
    from lance_duck.maintenance.validation import files, losses
    from lance_duck.maintenance.validation import validate as validation
    from lance_duck.verbs import change
    from lance_duck.verbs.indexes import kinds
    from lance_duck.verbs.indexes import optimize as index_upkeep
    from lance_duck.verbs.public import fragment_metadata
    from lance_duck.verbs.versions import repair as repairs
else:
    reuse_write = lazy.modules(globals(), "lance_duck.index", "reuse_write")
    cleanup, cleanup_plan, compact, rewriting = lazy.modules(
        globals(), "lance_duck.maintenance", "cleanup", "cleanup_plan", "compact", "rewrite"
    )
    files, losses, validation = lazy.modules(
        globals(), "lance_duck.maintenance.validation", "files", "losses", "validate"
    )
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    kinds, index_upkeep = lazy.modules(globals(), "lance_duck.verbs.indexes", "kinds", "optimize")
    fragment_metadata = lazy.modules(globals(), "lance_duck.verbs.public", "fragment_metadata")
    repairs = lazy.modules(globals(), "lance_duck.verbs.versions", "repair")


@dataclass(frozen=True)
class CompactionMetrics:
    """Numbers of fragments and files that a compaction removed and added; removed deletion files count, too."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0


@dataclass(frozen=True, repr=False)
class RewriteResult:
    """The result of a task. It compares, pickles, and converts to JSON and back.

    Attributes:
        metrics: Numbers of fragments and files.
        old_fragments: Fragments that were read.
        new_fragments: Fragments that replace them once `Compaction.commit` commits the result.
        read_version: Version that the old fragments were read in.
        row_addrs: Old addresses of the rows, as a serialized treemap, which pylance needs to commit the result.
    """

    metrics: CompactionMetrics
    old_fragments: list[fragment_metadata.FragmentMetadata]
    new_fragments: list[fragment_metadata.FragmentMetadata]
    read_version: int
    row_addrs: bytes | None = None

    def __repr__(self) -> str:
        new, old = self.new_fragments, self.old_fragments
        return f"RewriteResult(read_version={self.read_version}, new_fragments={new}, old_fragments={old})"

    def json(self) -> str:
        """Return the result as JSON text."""
        raw = {
            "metrics": vars(self.metrics),
            "new_fragments": [f.to_json() for f in self.new_fragments],
            "read_version": self.read_version,
            "original_fragments": [f.to_json() for f in self.old_fragments],
            "row_addrs": None if self.row_addrs is None else list(self.row_addrs),
        }
        return json.dumps(raw)

    @staticmethod
    def from_json(text: str) -> RewriteResult:
        """Build a result from the text of `json`; raises InvalidInputError for other text."""
        raw = _parsed(text, "result of a compaction task")
        try:
            return RewriteResult(
                CompactionMetrics(**raw["metrics"]),
                [fragment_metadata.FragmentMetadata.from_json(f) for f in raw["original_fragments"]],
                [fragment_metadata.FragmentMetadata.from_json(f) for f in raw["new_fragments"]],
                int(raw["read_version"]),
                None if raw.get("row_addrs") is None else bytes(raw["row_addrs"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError("not the result of a compaction task", found=str(error)) from error


@checked_calls
@dataclass(frozen=True)
class CompactionTask:
    """A group of fragments to rewrite. The task compares, pickles, and converts to JSON and back."""

    fragments: list[fragment_metadata.FragmentMetadata]
    read_version: int
    options: CompactionOptions = field(default_factory=CompactionOptions)

    def execute(self, dataset: TableMethods) -> RewriteResult:
        """Rewrite the group, in any process that reaches the table.

        Raises:
            InvalidInputError: The planned version has no such fragments.
        """
        snapshot = dataset.handle.snapshot.checkout(self.read_version)
        fragments = [snapshot.fragment(f.id) for f in self.fragments]
        rewritten = rewriting.rewrite(snapshot, fragments, self.options)
        new = [fragment_metadata.metadata_of(f) for f in rewritten.new]
        rows = reuse_write.surviving_rows(snapshot, fragments)
        return RewriteResult(_metrics([rewritten]), self.fragments, new, self.read_version, rows)

    def json(self) -> str:
        """Return the task as JSON text."""
        return json.dumps(
            {
                "task": {"fragments": [f.to_json() for f in self.fragments]},
                "read_version": self.read_version,
                "options": self.options.to_json(),
            }
        )

    @staticmethod
    def from_json(text: str) -> CompactionTask:
        """Build a task from the text of `json`; raises InvalidInputError for other text."""
        raw = _parsed(text, "compaction task")
        try:
            fragments = [fragment_metadata.FragmentMetadata.from_json(f) for f in raw["task"]["fragments"]]
            return CompactionTask(fragments, int(raw["read_version"]), compaction_options(raw["options"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError("not a compaction task", found=str(error)) from error


@dataclass(frozen=True, repr=False)
class CompactionPlan:
    """Tasks that can run in parallel, anywhere. The plan compares, pickles, and converts to JSON and back."""

    tasks: list[CompactionTask]
    read_version: int
    options: CompactionOptions = field(default_factory=CompactionOptions)

    def __repr__(self) -> str:
        return f"CompactionPlan(read_version={self.read_version}, tasks=<{self.num_tasks()} compaction tasks>)"

    def num_tasks(self) -> int:
        """Return the number of tasks."""
        return len(self.tasks)

    def json(self) -> str:
        """Return the plan as JSON text."""
        return json.dumps(
            {
                "tasks": [{"fragments": [f.to_json() for f in task.fragments]} for task in self.tasks],
                "read_version": self.read_version,
                "options": self.options.to_json(),
            }
        )

    @staticmethod
    def from_json(text: str) -> CompactionPlan:
        """Build a plan from the text of `json`; raises InvalidInputError for other text."""
        raw = _parsed(text, "compaction plan")
        try:
            version, options = int(raw["read_version"]), compaction_options(raw["options"])
            groups = [
                [fragment_metadata.FragmentMetadata.from_json(f) for f in task["fragments"]] for task in raw["tasks"]
            ]
            return CompactionPlan([CompactionTask(g, version, options) for g in groups], version, options)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError("not a compaction plan", found=str(error)) from error


@checked_calls
class Compaction:
    """Compaction in steps: plan, execute the tasks anywhere, commit their results."""

    @staticmethod
    def plan(dataset: TableMethods, options: Mapping[str, Any] | None = None) -> CompactionPlan:
        """Plan a compaction; options are those of `DatasetOptimizer.compact_files`."""
        snapshot = dataset.handle.snapshot
        settings = compaction_options(options, snapshot.config)
        with uncollected():
            groups = [list(map(fragment_metadata.metadata_of, g)) for g in compact.plan_compaction(snapshot, settings)]
        tasks = [CompactionTask(group, snapshot.version, settings) for group in groups]
        return CompactionPlan(tasks, snapshot.version, settings)

    @staticmethod
    def execute(dataset: TableMethods, options: Mapping[str, Any] | None = None) -> CompactionMetrics:
        """Plan, execute and commit a compaction; the dataset moves to the new version."""
        return _compact(dataset, options)

    @staticmethod
    def commit(
        dataset: TableMethods, rewrites: Sequence[RewriteResult], options: Mapping[str, Any] | None = None
    ) -> CompactionMetrics:
        """Commit the results of tasks, as one change; the dataset moves to the new version.

        Raises:
            RetryableError: Another writer changed one of the fragments: plan anew.
            UnsupportedError: Indices of a table with stable row ids are to be remapped later.
        """
        settings = compaction_options(options, dataset.handle.snapshot.config)
        groups = [
            rewriting.RewrittenGroup(
                r.read_version,
                tuple(map(fragment_metadata.fragment_from, r.old_fragments)),
                tuple(map(fragment_metadata.fragment_from, r.new_fragments)),
            )
            for r in rewrites
        ]
        dataset.handle.move_to(compact.commit_rewrites(dataset.handle.snapshot, groups, settings))
        return _metrics(groups)


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
        return _compact(self._dataset, options, transaction_properties, progress)

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


def _compact(
    dataset: TableMethods,
    options: Mapping[str, Any] | None,
    properties: Mapping[str, str] | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> CompactionMetrics:
    settings = compaction_options(options, dataset.handle.snapshot.config)
    compacted = compact.compact(dataset.handle.snapshot, settings, properties, progress)
    dataset.handle.move_to(compacted.snapshot)
    return _metrics(compacted.committed)


def _metrics(done: Sequence[rewriting.RewrittenGroup]) -> CompactionMetrics:
    old, new = sum(len(group.old) for group in done), sum(len(group.new) for group in done)
    return CompactionMetrics(old, new, sum(g.files_removed for g in done), sum(g.files_added for g in done))


def _parsed(text: str, what: str) -> dict[str, Any]:
    try:
        raw = json.loads(text)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"not the JSON of a {what}", found=str(error)) from error
    if not isinstance(raw, dict):
        raise InvalidInputError(f"not the JSON of a {what}", found=type(raw).__name__)
    return raw
