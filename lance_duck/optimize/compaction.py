"""Compaction in steps, with pylance's interface. The tasks of a plan run in any process, and are committed together."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError
from lance_duck.lazy import uncollected
from lance_duck.maintenance.options import CompactionOptions, compaction_options
from lance_duck.verbs.handle import TableMethods

if TYPE_CHECKING:
    from lance_duck.index import reuse_write
    from lance_duck.maintenance import compact
    from lance_duck.maintenance import rewrite as rewriting
    from lance_duck.verbs.public import fragment_metadata
else:
    reuse_write = lazy.modules(globals(), "lance_duck.index", "reuse_write")
    compact, rewriting = lazy.modules(globals(), "lance_duck.maintenance", "compact", "rewrite")
    fragment_metadata = lazy.modules(globals(), "lance_duck.verbs.public", "fragment_metadata")


@dataclass(frozen=True)
class CompactionMetrics:
    """Numbers of fragments and files that a compaction removed and added. Removed deletion files count as files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0


@dataclass(frozen=True, repr=False)
class RewriteResult:
    """The result of a task. It can be compared, pickled, and converted to JSON and back.

    Attributes:
        metrics: Numbers of fragments and files removed and added.
        old_fragments: Fragments that were read.
        new_fragments: Fragments that replace them once `Compaction.commit` commits the result.
        read_version: The table version that contains the old fragments.
        row_addrs: Old addresses of the surviving rows, as a serialized treemap. pylance needs them to commit the
            result.
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
        """Parse a result from the output of `json`. Raises InvalidInputError for other strings."""
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
    """A group of fragments to rewrite. The task can be compared, pickled, and converted to JSON and back."""

    fragments: list[fragment_metadata.FragmentMetadata]
    read_version: int
    options: CompactionOptions = field(default_factory=CompactionOptions)

    def execute(self, dataset: TableMethods) -> RewriteResult:
        """Rewrite the group. Any process with access to the table can run it.

        Raises:
            InvalidInputError: A fragment does not exist in the planned version.
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
        """Parse a task from the output of `json`. Raises InvalidInputError for other strings."""
        raw = _parsed(text, "compaction task")
        try:
            fragments = [fragment_metadata.FragmentMetadata.from_json(f) for f in raw["task"]["fragments"]]
            return CompactionTask(fragments, int(raw["read_version"]), compaction_options(raw["options"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError("not a compaction task", found=str(error)) from error


@dataclass(frozen=True, repr=False)
class CompactionPlan:
    """Tasks that can run in parallel, in any process. The plan can be compared, pickled, and stored as JSON."""

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
        """Parse a plan from the output of `json`. Raises InvalidInputError for other strings."""
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
    """Compaction in steps: plan, execute the tasks in any process, commit their results."""

    @staticmethod
    def plan(dataset: TableMethods, options: Mapping[str, Any] | None = None) -> CompactionPlan:
        """Plan a compaction. Takes the same options as `DatasetOptimizer.compact_files`, except `order_by`."""
        compact.refuse_order(compaction_options(options, dataset.handle.snapshot.config))
        return plan_table(dataset, options)

    @staticmethod
    def execute(dataset: TableMethods, options: Mapping[str, Any] | None = None) -> CompactionMetrics:
        """Plan, execute and commit a compaction. The dataset moves to the new version."""
        return compact_table(dataset, options)

    @staticmethod
    def commit(
        dataset: TableMethods, rewrites: Sequence[RewriteResult], options: Mapping[str, Any] | None = None
    ) -> CompactionMetrics:
        """Commit the results of tasks as one change. The dataset moves to the new version.

        Raises:
            RetryableError: Another writer changed one of the fragments. Plan again.
            UnsupportedError: The options defer index remapping, and the table has stable row ids.
        """
        settings = compaction_options(options, dataset.handle.snapshot.config)
        compact.refuse_order(settings)
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


def plan_table(dataset: TableMethods, options: Mapping[str, Any] | None = None) -> CompactionPlan:
    """Return the groups that `compact_table` would rewrite."""
    snapshot = dataset.handle.snapshot
    settings = compaction_options(options, snapshot.config)
    with uncollected():
        groups = [list(map(fragment_metadata.metadata_of, g)) for g in compact.plan_compaction(snapshot, settings)]
    tasks = [CompactionTask(group, snapshot.version, settings) for group in groups]
    return CompactionPlan(tasks, snapshot.version, settings)


def compact_table(
    dataset: TableMethods,
    options: Mapping[str, Any] | None,
    properties: Mapping[str, str] | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> CompactionMetrics:
    """Compact a table, and move its handle to the new version: see `DatasetOptimizer.compact_files`."""
    settings = compaction_options(options, dataset.handle.main.config)
    compacted = compact.compact(dataset.handle.main, settings, properties, progress)
    dataset.handle.move_to(compacted.snapshot)
    return _metrics(compacted.committed)


def _metrics(done: Sequence[rewriting.RewrittenGroup]) -> CompactionMetrics:
    return CompactionMetrics(
        sum(len(r.old) for r in done),
        sum(len(r.new) for r in done),
        sum(r.files_removed for r in done),
        sum(r.files_added for r in done),
    )


def _parsed(text: str, what: str) -> dict[str, Any]:
    try:
        raw = json.loads(text)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"not the JSON of a {what}", found=str(error)) from error
    if not isinstance(raw, dict):
        raise InvalidInputError(f"not the JSON of a {what}", found=type(raw).__name__)
    return raw
