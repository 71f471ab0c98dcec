"""The clauses of a merge: for matching rows, for unmatched source rows, and for unmatched table rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import DataMismatchError, InvalidInputError
from lance_duck.scan.evaluator.expressions import evaluate_sql
from lance_duck.scan.filters import Filter, make_filter
from lance_duck.scan.projection import readable_schema
from lance_duck.scan.sql.vet import SqlExpression, parse_sql
from lance_duck.wire.schema import Schema

NOTHING: Final = "DoNothing"
UPDATE: Final = "UpdateAll"
DELETE: Final = "Delete"
FAIL: Final = "Fail"
KEEP: Final = "Keep"

MODES: Final = ("auto", "rewrite_rows", "rewrite_columns")
DEDUPES: Final = ("fail", "first_seen")


@dataclass(frozen=True)
class MergePlan:
    """The clauses and options of a merge.

    Attributes:
        on: Key columns.
        matched: Action for table rows with a match: NOTHING, UPDATE, DELETE or FAIL.
        condition: SQL condition of an update, on `source` and `target`. None updates all matches.
        insert: Whether source rows without a match are inserted.
        by_source_delete: Whether table rows without a match are deleted.
        by_source_condition: SQL condition of this deletion, on the table. None deletes all such rows.
        write_mode: One of MODES.
        dedupe: One of DEDUPES: how duplicate source keys are handled.
        retries: Maximum number of repetitions after lost races.
        timeout: Time after which the merge is no longer repeated.
        data_storage_version: Version of new data files. None is the table's version.
        target_bases: Base paths for new fragments, by name or URI. None is the table root.
        target_all_bases: True: new fragments go to all base paths and the table root. False: only to the base paths.
            None uses `target_bases`.
        use_index: Whether a key index may be used if the source has few keys.
        memory_limit: Approximate memory limit for buffered rows, in bytes. None is unlimited.
    """

    on: tuple[str, ...]
    matched: str = NOTHING
    condition: str | None = None
    insert: bool = False
    by_source_delete: bool = False
    by_source_condition: str | None = None
    write_mode: str = "auto"
    dedupe: str = "fail"
    retries: int = 10
    timeout: timedelta = timedelta(seconds=30)
    data_storage_version: str | None = None
    target_bases: tuple[str, ...] | None = None
    target_all_bases: bool | None = None
    use_index: bool = True
    memory_limit: int | None = None

    @property
    def is_conditional(self) -> bool:
        """Whether an action applies only to rows that satisfy a condition."""
        return self.condition is not None or self.by_source_condition is not None

    def check(self) -> None:
        """Raise InvalidInputError if the merge does nothing."""
        if self.matched == NOTHING and not self.insert and not self.by_source_delete:
            raise InvalidInputError(
                "the merge does not have an action",
                where="merge_insert",
                remedy="call when_matched_update_all, when_not_matched_insert_all or when_not_matched_by_source_delete",
            )

    def describe(self) -> str:
        """Describe the merge in one line."""
        by_source = KEEP
        if self.by_source_delete:
            by_source = DELETE if self.by_source_condition is None else f"DeleteIf({self.by_source_condition})"
        matched = self.matched if self.condition is None else f"UpdateIf({self.condition})"
        insert = "InsertAll" if self.insert else NOTHING
        return (
            f"MergeInsert: on=[{', '.join(self.on)}], when_matched={matched}, when_not_matched={insert}, "
            f"when_not_matched_by_source={by_source}"
        )


@dataclass(frozen=True)
class PairCondition:
    """A condition on pairs of a source row and its matching table row.

    Attributes:
        expression: The SQL expression.
        source_columns: Source columns that it may read.
        target_columns: Table columns that it may read.
    """

    expression: SqlExpression
    source_columns: tuple[str, ...]
    target_columns: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, source: pa.Schema, target: pa.Schema) -> PairCondition:
        """Parse and validate a condition.

        Raises:
            InvalidInputError: The condition has a syntax error or unknown columns, or is not Boolean.
        """
        words = set(re.findall(r"\w+", str(text).lower()))
        sides = {
            name: [field for field in schema if set(re.findall(r"\w+", field.name.lower())) <= words]
            for name, schema in (("source", source), ("target", target))
        }
        schema = pa.schema([pa.field(name, pa.struct(fields)) for name, fields in sides.items()])
        expression = parse_sql(text, schema, "condition of a merge")
        if expression.type != "BOOLEAN":
            raise InvalidInputError(
                "the merge condition is not Boolean", where=repr(text), expected="BOOLEAN", found=expression.type
            )
        names = {
            side: dict.fromkeys(path[1] for path in expression.paths if path[0] == side and path[1:]) for side in sides
        }
        for side in [path[0] for path in expression.paths if not path[1:]]:
            names[side] = dict.fromkeys(field.name for field in sides[side])
        return cls(expression, tuple(names["source"]), tuple(names["target"]))

    def mask(self, source: pa.Table, target: pa.Table) -> pa.BooleanArray:
        """Return the mask of pairs that satisfy the condition. Both tables have one row per pair."""
        sides = {"source": _struct(source), "target": _struct(target)}
        tables = {name: side for name, side in sides.items() if side is not None}
        answer = evaluate_sql(f"{self.expression.sql} AS answer", tables, source.num_rows, text=self.expression.text)
        return answer.column(0).combine_chunks().fill_null(False)


def by_source_filter(plan: MergePlan, schema: Schema) -> Filter | None:
    """Return the condition for deleting rows without a match, or None."""
    return make_filter(plan.by_source_condition, readable_schema(schema))


def filter_columns(condition: Filter | None) -> list[str]:
    """Return the top-level columns that a filter reads."""
    return [] if condition is None else list(dict.fromkeys(path[0] for path in condition.paths()))


def lost_rows(plan: MergePlan, condition: Filter | None, rows: pa.Table) -> NDArray[np.bool_]:
    """Return the mask of rows to delete if they do not match. `condition` is the result of `by_source_filter`."""
    if condition is None:
        return np.full(rows.num_rows, plan.by_source_delete)
    columns = columns_of(rows.select(filter_columns(condition)))
    return np.asarray(condition.mask(columns, rows.num_rows), np.bool_)


def repeated_key(key: str) -> DataMismatchError:
    """Return the error for a source with duplicate keys."""
    return DataMismatchError(
        "Ambiguous merge: the source has a key more than once",
        where="merge_insert",
        found=key,
        remedy="remove duplicate keys, or use source_dedupe_behavior('first_seen')",
    )


def matched_row(key: str) -> InvalidInputError:
    """Return the error for a row that matches if the action is FAIL."""
    return InvalidInputError(
        "a source row matches a row of the table",
        where="merge_insert",
        expected="no match, because of when_matched_fail",
        found=key,
    )


def columns_of(table: pa.Table) -> Mapping[str, Any]:
    """Return the columns of a table by name, each as one array."""
    return {
        name: column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def _struct(table: pa.Table) -> pa.StructArray | None:
    if not table.num_columns:
        return None
    columns = columns_of(table)
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
