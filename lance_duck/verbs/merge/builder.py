"""The merge builder with pylance's method names, and a merge attempt in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Self, TypeVar

import pyarrow as pa

from lance_duck.arguments import byte_count, checked_calls, unknown_value
from lance_duck.commit import run_again
from lance_duck.commit.committer import new_transaction
from lance_duck.commit.operations import REWRITE_COLUMNS
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.markup import PlanText
from lance_duck.redact import shown
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.change import check_patience, transaction_properties
from lance_duck.verbs.handle import TableMethods
from lance_duck.verbs.merge.columns import check_columns, rewrite_columns
from lance_duck.verbs.merge.commit import MergeResult, WrittenMerge, commit_merge, joined_parts, merge_newest
from lance_duck.verbs.merge.match import match_rows
from lance_duck.verbs.merge.parts import write_matches
from lance_duck.verbs.merge.plan import DEDUPES, DELETE, FAIL, MODES, NOTHING, UPDATE, MergePlan
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.merge.write import ordered_matches
from lance_duck.verbs.public.bases import target_bases
from lance_duck.verbs.public.lance_operation import Transaction
from lance_duck.verbs.public.operation_convert import from_transaction
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.rows_moved import delete_offsets
from lance_duck.wire.schema import Schema
from lance_duck.wire.schema_write import primary_key
from lance_duck.wire.transaction import transaction_from_proto
from lance_duck.write.options import WriteOptions, storage_version

_T = TypeVar("_T")


@checked_calls
class MergeInsertBuilder:
    """Builds a merge of rows into a table step by step, and executes it.

    Rows match if all their keys are equal. Null never matches. A source with duplicate keys is rejected, unless
    `source_dedupe_behavior` allows it. If two concurrent merges insert the same key, only one commits. The other one
    runs again and finds the row.

    Args:
        dataset: The table.
        on: Key columns. Defaults to the unenforced primary key.

    Raises:
        InvalidInputError: A column does not exist, or neither the table nor the caller declares a key.
    """

    def __init__(self, dataset: TableMethods, on: str | Iterable[str] | None = None) -> None:
        self._dataset = dataset
        self._plan = MergePlan(_keys(dataset.handle.base.schema, on))
        self._said: dict[str, str] | None = None

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Update matching rows with the source's values. Columns missing from the source keep their values.

        Args:
            condition: SQL condition on `source` and `target`, such as "source.version > target.version". Only rows that
                satisfy it are updated. Defaults to all matching rows.
        """
        return self._set(matched=UPDATE, condition=condition)

    def when_matched_delete(self) -> Self:
        """Delete matching rows."""
        return self._set(matched=DELETE, condition=None)

    def when_matched_fail(self) -> Self:
        """Fail if a row matches."""
        return self._set(matched=FAIL, condition=None)

    def when_matched_do_nothing(self) -> Self:
        """Leave matching rows unchanged. This is the default."""
        return self._set(matched=NOTHING, condition=None)

    def when_not_matched_insert_all(self) -> Self:
        """Insert source rows without a match. Columns missing from the source are null."""
        return self._set(insert=True)

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> Self:
        """Delete table rows without a match in the source.

        Args:
            expr: SQL condition on the table. Only rows that satisfy it are deleted. Defaults to all.
        """
        return self._set(by_source_delete=True, by_source_condition=expr)

    def source_dedupe_behavior(self, behavior: str) -> Self:
        """Set how duplicate source keys are handled: "fail" rejects them, "first_seen" keeps only the first row."""
        return self._set(dedupe=_one_of("source_dedupe_behavior", behavior, DEDUPES))

    def conflict_retries(self, max_retries: int) -> Self:
        """Set how often the merge is repeated on the newest version after lost races. Defaults to 10."""
        check_patience(max_retries, self._plan.timeout)
        return self._set(retries=max_retries)

    def retry_timeout(self, timeout: timedelta) -> Self:
        """Set the time after which the merge is no longer repeated. Defaults to 30 seconds."""
        check_patience(self._plan.retries, timeout)
        return self._set(timeout=timeout)

    def use_index(self, use_index: bool) -> Self:
        """Set whether a key index may be used if the source has few keys. Defaults to True. Affects only speed."""
        return self._set(use_index=bool(use_index))

    def memory_limit(self, limit: int | str) -> Self:
        """Set an approximate memory limit for buffered rows. Larger sources are spilled to a temporary file.

        Source keys are not included: 16 bytes per row, and more for strings. The name follows DuckDB's setting.

        Args:
            limit: Size in bytes, or a string such as "512MB".
        """
        return self._set(memory_limit=byte_count(limit, "memory_limit"))

    def write_mode(self, mode: str) -> Self:
        """Set how updated rows are written: "rewrite_rows" (alias "auto") or "rewrite_columns".

        "rewrite_columns" rewrites only the source's columns, for all rows of fragments with matching rows. It supports
        only updates, and the source must lack some of the table's columns.
        """
        return self._set(write_mode=_one_of("write_mode", mode, MODES))

    def data_storage_version(self, version: str) -> Self:
        """Set the version of new data files. Defaults to the table's version."""
        return self._set(data_storage_version=storage_version(version))

    def commit_message(self, message: str) -> Self:
        """Store a message with the transaction."""
        self._said = transaction_properties(message, self._said)
        return self

    def transaction_properties(self, properties: Mapping[str, str]) -> Self:
        """Store key-value pairs of strings with the transaction."""
        self._said = transaction_properties(None, {**(self._said or {}), **properties})
        return self

    def target_bases(self, bases: list[str]) -> Self:
        """Write new fragments to these base paths, by name or URI, round-robin. The table's URI selects its root."""
        return self._set(target_bases=tuple(bases), target_all_bases=None)

    def target_all_bases(self, include_primary: bool = True) -> Self:
        """Write new fragments round-robin to all base paths, and with `include_primary` also to the table root."""
        return self._set(target_bases=None, target_all_bases=include_primary)

    def execute(self, data_obj: Any, *, schema: pa.Schema | None = None) -> MergeResult:
        """Execute the merge and move the dataset to the new version.

        A conditional merge that changes no row does not create a version.

        Args:
            data_obj: The source, in any form that `write_dataset` accepts.
            schema: Schema for a source that does not include one.

        Returns:
            {"num_inserted_rows", "num_updated_rows", "num_deleted_rows"}.

        Raises:
            InvalidInputError: The source does not fit the table, has duplicate keys, or matches rows although
                `when_matched_fail` is set. Also raised if a condition is invalid, or the merge does nothing.
            CommitConflictError: A conflicting change was committed first, or all retries lost the race.
        """
        after, result = self._with_source(data_obj, schema, self._attempts)
        self._dataset.handle.move_to(after)
        return result

    def execute_uncommitted(self, data_obj: Any, *, schema: pa.Schema | None = None) -> tuple[Transaction, MergeResult]:
        """Write the files of the merge without a commit. Pass the result to `LanceDataset.commit`.

        Concurrent inserts of the same keys are not detected, unless the keys are the primary key.

        Args:
            data_obj: The source, in any form that `write_dataset` accepts.
            schema: Schema for a source that does not include one.

        Returns:
            The transaction, and the number of rows that it will change.

        Raises:
            InvalidInputError: See `execute`.
        """

        def write(source: MergeSource) -> tuple[Transaction, MergeResult]:
            snapshot = self._dataset.handle.snapshot
            options = self._options(snapshot)
            with UncommittedFiles(snapshot, options.bases) as draft:
                result = _write_merge(snapshot, self._plan, source, options, draft)
            snapshot.store.sync()
            proto = new_transaction(snapshot.version, result.operation, self._said)
            return from_transaction(transaction_from_proto(proto)), result.result

        return self._with_source(data_obj, schema, write)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """Describe the merge in a few lines.

        Args:
            schema: Schema of the source. Defaults to the table schema.
            verbose: Whether to list the columns and their types.
        """
        self._plan.check()
        snapshot = self._dataset.handle.snapshot
        names = snapshot.schema.names if schema is None else schema.names
        return _explain_merge(self._plan, snapshot, names, schema if verbose else None)

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Execute the merge without a commit. Returns its steps and timing. The written files are deleted."""
        began = time.perf_counter()

        def attempt(source: MergeSource) -> str:
            snapshot = self._dataset.handle.snapshot
            options = self._options(snapshot)
            with _DiscardedFiles(snapshot, options.bases) as draft:
                merged = _write_merge(snapshot, self._plan, source, options, draft)
            took = time.perf_counter() - began
            return _explain_merge(self._plan, snapshot, source.table.column_names, metrics=_metrics_of(merged, took))

        return self._with_source(data_obj, schema, attempt)

    def _attempts(self, source: MergeSource) -> tuple[Snapshot, MergeResult]:
        def attempt(snapshot: Snapshot) -> tuple[Snapshot, MergeResult]:
            options = self._options(snapshot)
            with UncommittedFiles(snapshot, options.bases) as draft:
                merged = _write_merge(snapshot, self._plan, source, options, draft)
                return commit_merge(draft, merged, self._said)

        work = partial(merge_newest, attempt=attempt)
        return run_again(self._dataset.handle.base, work, self._plan.retries, self._plan.timeout.total_seconds())

    def _with_source(self, data: Any, schema: pa.Schema | None, work: Callable[[MergeSource], _T]) -> _T:
        self._plan.check()
        source = MergeSource(data, self._dataset.handle.snapshot.schema, self._plan.on, schema, self._plan.memory_limit)
        try:
            return work(source)
        finally:
            source.close()

    def _options(self, snapshot: Snapshot) -> WriteOptions:
        plan = self._plan
        bases = target_bases(snapshot.location, snapshot.base_paths, plan.target_bases, plan.target_all_bases)
        options = WriteOptions(
            data_storage_version=plan.data_storage_version or snapshot.data_storage_version,
            bases=bases,
            committed_here=True,
        )
        return options if plan.memory_limit is None else options.within(plan.memory_limit)

    def _set(self, **choices: Any) -> Self:
        self._plan = replace(self._plan, **choices)
        return self


class _DiscardedFiles(UncommittedFiles):
    """Files of a merge that is never committed. They are always deleted."""

    def __exit__(self, *_: object) -> None:
        super().__exit__(Exception, Exception(), None)


def _keys(schema: Schema, on: str | Iterable[str] | None) -> tuple[str, ...]:
    if on is None:
        names = tuple(field.name for field in primary_key(schema))
    else:
        if hasattr(on, "columns") or hasattr(on, "schema"):  # iterating a DataFrame yields its columns
            remedy = 'rows are given last: merge_insert("id").when_matched_update_all().execute(rows)'
            raise WrongTypeError("on", where="merge_insert", expected="names", found=type(on).__name__, remedy=remedy)
        names = (on,) if isinstance(on, str) else tuple(on)
    if not names:
        raise InvalidInputError(
            "a merge needs join keys", where="merge_insert", expected="key columns, or a table with a primary key"
        )
    for i, name in enumerate(names):
        if name not in schema.names:
            raise InvalidInputError(
                f"key column {name!r} does not exist",
                where="merge_insert",
                expected=f"one of {', '.join(schema.names)}",
            )
        if name in names[:i]:
            raise InvalidInputError("a key column appears twice", where="merge_insert", found=name)
    return names


def _one_of(what: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise unknown_value(what, value, choices)
    return value


def _explain_merge(
    plan: MergePlan, snapshot: Snapshot, names: Sequence[str], schema: pa.Schema | None = None, metrics: str = ""
) -> str:
    """Describe a merge, one line per step.

    Args:
        plan: The merge.
        snapshot: The version to merge into.
        names: Column names of the source.
        schema: Schema of the source, to include types, or None for names only.
        metrics: Line of `_metrics_of`; empty if the merge has not run.
    """
    return PlanText("\n".join(_explained_lines(plan, snapshot, names, schema, metrics)) + "\n")


def _metrics_of(merged: WrittenMerge, seconds: float) -> str:
    """Describe the written files and the elapsed time."""
    files = [file for fragment in merged.operation.new_fragments for file in fragment.files]
    counts: dict[str, object] = {
        "bytes_written": sum(file.file_size or 0 for file in files),
        "num_files_written": len(files),
        **merged.result,
    }
    parts = ", ".join(f"{name}={count}" for name, count in sorted(counts.items()))
    return f", elapsed={seconds * 1000:.3f}ms, metrics=[{parts}]"


def _explained_lines(
    plan: MergePlan, snapshot: Snapshot, names: Sequence[str], schema: pa.Schema | None, metrics: str
) -> Iterator[str]:
    missing = [name for name in snapshot.schema.names if name not in names]
    yield plan.describe() + metrics
    yield f"  HashJoin: on=[{', '.join(plan.on)}], build=source, probe=target"
    reads = ", ".join([*plan.on, ROW_ADDRESS])
    sieve = "none, rows that the source lacks matter too" if plan.by_source_delete else "rows with keys of the source"
    yield f"    LanceScan: uri={shown(snapshot.uri)}, version={snapshot.version}, columns: {reads}, filter: {sieve}"
    yield f"    Source: {', '.join(names)}"
    if schema is not None:
        yield from (f"      {field.name}: {field.type}" for field in schema)
    if missing and plan.matched == UPDATE:
        yield f"  Read for updated rows: {', '.join(missing)}"


def _write_merge(
    snapshot: Snapshot, plan: MergePlan, source: MergeSource, options: WriteOptions, draft: UncommittedFiles
) -> WrittenMerge:
    """Match the rows of a merge, and write them as one part.

    Raises:
        InvalidInputError: See `match_rows` and `new_rows`.
    """
    source.fit(snapshot.schema)
    stable, in_place = snapshot.has_stable_row_ids, plan.write_mode == REWRITE_COLUMNS
    if in_place:
        check_columns(plan, source)
    matches = ordered_matches(match_rows(snapshot, plan, source), by_address=stable or not source.is_whole)
    if in_place:
        update = rewrite_columns(snapshot, plan, source, matches, options, draft)
        counts: MergeResult = {
            "num_inserted_rows": 0,
            "num_updated_rows": len(matches.updated),
            "num_deleted_rows": 0,
        }
        return WrittenMerge(update, None, None, counts, plan.is_conditional)
    part = write_matches(snapshot, source, matches, options, draft)
    return joined_parts(snapshot, plan, source.schema.names, [part], lambda rows: delete_offsets(snapshot, rows, draft))
