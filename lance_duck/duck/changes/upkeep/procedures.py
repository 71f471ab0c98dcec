"""Procedures of upkeep, which end in the verbs that OPTIMIZE, VACUUM and ALTER INDEX … OPTIMIZE end in.

    CALL lance_compact(table, target_rows_per_fragment => n, …, memory_limit => '8MB', dry_run => true)
    CALL lance_cleanup(table, older_than => INTERVAL '7 days', retain => n, dry_run => true)
    CALL lance_optimize_indexes(table, index => name, num_indices_to_merge => n, retrain => true, memory_limit => '8MB')
    CALL lance_compact_files(table) | lance_cleanup_old_versions(table, older_than_seconds, delete_unverified)
    CALL lance_create_scalar_index(table, column, name)
    CALL lance_validate(table)

Those of the fourth and fifth line give one row with `Count`; the last one gives a row for each thing that is wrong.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import pyarrow as pa

from lance_duck.arguments import number_or_text
from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.procedure import TABLE, Procedure
from lance_duck.duck.changes.result import ChangeResult, counted, operated, returned
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.upkeep.operations import CLEANUP_ALIASES, Outcome, cleaned_up, compacted, indexes_optimized

_COUNTS: Final = (
    *("target_rows_per_fragment", "max_rows_per_group", "max_bytes_per_file", "num_threads", "batch_size"),
    *("max_source_fragments", "max_source_rows", "max_source_bytes"),
)
_FLAGS: Final = ("materialize_deletions", "defer_index_remap", "remap_indices", "dry_run")


class _OneTableProcedure(Procedure):
    """A procedure about one table, which its first argument names."""

    def given(self, session: ChangeSession) -> tuple[LanceDataset, dict[str, Any]]:
        """Return the table and the other arguments that are given.

        Raises:
            UnsupportedError: A transaction is open, or the table is not to be changed.
        """
        session.explain_words(f"{self.subject} would change the table. Nothing was written.")
        session.refuse_in_transaction(self.subject)
        values = self.values(session)
        dataset = self.table(session, values).current()
        return dataset, {name: value for name, value in values.items() if name != TABLE and value is not None}


class TableProcedure(_OneTableProcedure):
    """A procedure that is a change of one table of its own, and gives one row with `Count`."""

    @abstractmethod
    def change(self, dataset: LanceDataset, values: Mapping[str, Any]) -> None:
        """Change the table.

        Args:
            dataset: The table; it moves to the new version.
            values: The arguments that are given, without the table.
        """

    def run(self, session: ChangeSession) -> ChangeResult:
        """Change the table."""
        self.change(*self.given(session))
        return counted(1)


class UpkeepProcedure(_OneTableProcedure):
    """A procedure that gives the figures of an operation."""

    @abstractmethod
    def outcome(self, dataset: LanceDataset, values: Mapping[str, Any]) -> Outcome:
        """Carry out the operation.

        Args:
            dataset: The table; it moves to the new version.
            values: The arguments that are given, without the table.
        """

    def run(self, session: ChangeSession) -> ChangeResult:
        """Carry out the operation."""
        return operated([self.outcome(*self.given(session))])


class CompactProcedure(UpkeepProcedure):
    """Joins small fragments."""

    name: ClassVar[str] = "compact"
    parameters: ClassVar[Mapping[str, str]] = {
        TABLE: "VARCHAR",
        **dict.fromkeys(_COUNTS, "BIGINT"),
        "materialize_deletions_threshold": "DOUBLE",
        "memory_limit": "VARCHAR",
        **dict.fromkeys(_FLAGS, "BOOLEAN"),
    }
    required: ClassVar[int] = 1

    def outcome(self, dataset: LanceDataset, values: Mapping[str, Any]) -> Outcome:
        """Compact the table."""
        return compacted(dataset, _with_bytes(values))


class CleanupProcedure(UpkeepProcedure):
    """Removes old versions."""

    name: ClassVar[str] = "cleanup"
    parameters: ClassVar[Mapping[str, str]] = {
        TABLE: "VARCHAR",
        "older_than": "INTERVAL",
        "retain": "BIGINT",
        "dry_run": "BOOLEAN",
        "delete_unverified": "BOOLEAN",
        "error_if_tagged_old_versions": "BOOLEAN",
    }
    required: ClassVar[int] = 1

    def outcome(self, dataset: LanceDataset, values: Mapping[str, Any]) -> Outcome:
        """Clean the table up."""
        return cleaned_up(dataset, {CLEANUP_ALIASES.get(name, name): value for name, value in values.items()})


class OptimizeIndexesProcedure(UpkeepProcedure):
    """Brings indexes up to date."""

    name: ClassVar[str] = "optimize_indexes"
    parameters: ClassVar[Mapping[str, str]] = {
        TABLE: "VARCHAR",
        "index": "VARCHAR",
        "num_indices_to_merge": "BIGINT",
        "retrain": "BOOLEAN",
        "memory_limit": "VARCHAR",
    }
    required: ClassVar[int] = 1

    def outcome(self, dataset: LanceDataset, values: Mapping[str, Any]) -> Outcome:
        """Bring the indexes up to date."""
        options = _with_bytes(values)
        names = [options.pop("index")] if "index" in options else None
        return indexes_optimized(dataset, {**options, "index_names": names})


class CompactFilesProcedure(TableProcedure):
    """Joins small fragments, under the name of the `lance` extension."""

    name: ClassVar[str] = "compact_files"
    parameters: ClassVar[Mapping[str, str]] = {TABLE: "VARCHAR"}
    required: ClassVar[int] = 1

    def change(self, dataset: LanceDataset, values: Mapping[str, Any]) -> None:
        """Compact the table."""
        compacted(dataset, values)


class CleanupOldVersionsProcedure(TableProcedure):
    """Removes old versions, under the name of the `lance` extension."""

    name: ClassVar[str] = "cleanup_old_versions"
    parameters: ClassVar[Mapping[str, str]] = {
        TABLE: "VARCHAR",
        "older_than_seconds": "BIGINT",
        "delete_unverified": "BOOLEAN",
    }
    required: ClassVar[int] = 3

    def change(self, dataset: LanceDataset, values: Mapping[str, Any]) -> None:
        """Clean the table up."""
        cleaned_up(dataset, {CLEANUP_ALIASES.get(name, name): value for name, value in values.items()})


class CreateScalarIndexProcedure(TableProcedure):
    """Makes a B-tree over a column."""

    name: ClassVar[str] = "create_scalar_index"
    parameters: ClassVar[Mapping[str, str]] = {TABLE: "VARCHAR", "column": "VARCHAR", "name": "VARCHAR"}
    required: ClassVar[int] = 3

    def change(self, dataset: LanceDataset, values: Mapping[str, Any]) -> None:
        """Make the index."""
        dataset.create_scalar_index(values["column"], "BTREE", values.get("name"), replace=False)


class ValidateProcedure(_OneTableProcedure):
    """Reads the whole table, and returns a row for each problem."""

    name: ClassVar[str] = "validate"
    parameters: ClassVar[Mapping[str, str]] = {TABLE: "VARCHAR"}
    required: ClassVar[int] = 1
    writes: ClassVar[bool] = False

    def run(self, session: ChangeSession) -> ChangeResult:
        """Read the table."""
        dataset, _ = self.given(session)
        problems = dataset.find_problems()
        columns = [[problem.where for problem in problems], [problem.what for problem in problems]]
        rows = pa.table([pa.array(column, pa.string()) for column in columns], ["place", "problem"])
        return returned(rows, ["VARCHAR"] * 2, -1)


PROCEDURES: Final[tuple[type[Procedure], ...]] = (
    *(CompactProcedure, CleanupProcedure, OptimizeIndexesProcedure),
    *(CompactFilesProcedure, CleanupOldVersionsProcedure, CreateScalarIndexProcedure),
    ValidateProcedure,
)


def _with_bytes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments in which a memory limit without a unit is a number."""
    return {name: number_or_text(value) if name == "memory_limit" else value for name, value in values.items()}
