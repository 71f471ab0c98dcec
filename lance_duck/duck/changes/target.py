"""One version of the table that a statement changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.arguments import unknown_column
from lance_duck.dataset import LanceDataset
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.identifiers import ambiguous_columns, folded, quoted
from lance_duck.duck.tables.computed_columns import TOKEN, AddressColumn, ComputedColumn, TableWithColumns
from lance_duck.duck.tables.table import Restriction
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.duckdb.nodes import predicate_from_node
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot

SOURCE: Final = "__lance_target"
"""Name of the table in generated statements. Its last column is the row address."""
ADDRESS: Final = f"__lance_address_{TOKEN}"
"""Name of the address column. Users cannot refer to it, because native tables do not have it."""

_ARRAY: Final = re.compile(r'("(?:[^"]|"")*")|\[\d+\]')
_OUTER_JOINS_LOSE_ARRAYS: Final = duckdb.__version__.startswith("2.0.0")
"""Whether DuckDB's outer joins fail, or turn NULL into zeros, if they hash the side with arrays. Fixed in 2.0.1."""


class AddressedTable(TableWithColumns):
    """Rows of one version of a table with their addresses, for a statement that changes them.

    Args:
        dataset: The version.
        computed: Computed columns in addition to the address.
        restriction: See `DuckTable`.
    """

    def __init__(
        self, dataset: LanceDataset, computed: Sequence[ComputedColumn] = (), restriction: Restriction | None = None
    ) -> None:
        columns = [AddressColumn(ADDRESS), *computed]
        super().__init__(lambda: dataset, columns, pinned=True, hidden=False, restriction=restriction)

    def widened(self, columns: Sequence[ComputedColumn]) -> AddressedTable:
        """See `TableWithColumns`."""
        return AddressedTable(self.dataset, [*self._own, *columns], self._restriction)

    def restricted(self, restriction: Restriction) -> AddressedTable:
        """See `DuckTable.restricted`."""
        return AddressedTable(self.dataset, self._own, restriction)

    @property
    def _own(self) -> list[ComputedColumn]:
        return [column for name, column in self.computed.items() if name != ADDRESS]

    def accepts(self, predicate: Any) -> bool:
        """Return whether a filter can be applied exactly.

        All such filters are applied, because a change usually needs few rows.

        Queries sample the table first. For a version that is read once, sampling is not worthwhile.
        """
        accepted = predicate_from_node(predicate, self.filtered_schema(self.dataset)) is not None
        self._offered(predicate, accepted=accepted)
        return accepted


@dataclass(frozen=True)
class TargetColumn:
    """A column that a statement writes.

    Attributes:
        name: Its name.
        type: Its DuckDB type.
        arrow: Its type in the table.
        nullable: Whether it may be null.
    """

    name: str
    type: str
    arrow: pa.DataType = field(hash=False)  # user-defined extension types are not hashable
    nullable: bool = True

    @property
    def quoted(self) -> str:
        """Its name as an SQL identifier."""
        return quoted(self.name)

    def read(self, expression: str) -> str:
        """Return SQL of a value in a form that Arrow supports, aliased as the column. Durations become microseconds.

        Args:
            expression: SQL of the value, which has the column's type.
        """
        value = f"epoch_us({expression})" if self.is_duration else expression
        return f"{value} AS {self.quoted}"

    @property
    def joined_type(self) -> str:
        """The column's type with lists instead of arrays, which an outer join can return."""
        if not _OUTER_JOINS_LOSE_ARRAYS:
            return self.type
        return _ARRAY.sub(lambda found: found[1] or "[]", self.type)

    @property
    def is_lost_by_joins(self) -> bool:
        """Whether outer joins cannot return its values, because they contain arrays."""
        return self.joined_type != self.type

    @property
    def is_duration(self) -> bool:
        """Whether the type contains durations. DuckDB reads them as intervals."""
        return bool(pa.types.is_duration(self.arrow))

    @cached_property
    def ambiguous(self) -> Mapping[str, list[str]]:
        """Struct field names that differ only by case, keyed by lower-case name."""
        return _ambiguous_fields(self.arrow)

    def refuse_ambiguous(self, where: str = "") -> None:
        """Raise InvalidInputError if field names differ only by case."""
        for name, names in self.ambiguous.items():
            raise ambiguous_name(name, names, f"{where}, column {self.name}" if where else f"column {self.name}")

    def cast(self, expression: str) -> str:
        """Return SQL that casts a value to the column's type, aliased as the column.

        Args:
            expression: SQL, followed by a newline if it may end with a comment.
        """
        return f"{self.value(expression)} AS {self.quoted}"

    def value(self, expression: str) -> str:
        """Return SQL that casts a value to the column's type, without an alias.

        Raises:
            InvalidInputError: The type has field names that differ only by case, which DuckDB does not support.
        """
        self.refuse_ambiguous()
        value = f"CAST(({expression}) AS {self.type})"
        return f"epoch_us({value})" if self.is_duration else value


@dataclass(frozen=True)
class TargetTable:
    """The version of a changed table that all clauses of the statement read.

    Attributes:
        name: Its unqualified name in the statement.
        dataset: The version.
        columns: Its columns, in order.
    """

    name: str
    dataset: LanceDataset
    columns: Sequence[TargetColumn]

    def read_all(self, source: str) -> str:
        """Return the SELECT list of all columns and the address, in a form that Arrow supports.

        Args:
            source: Name of the table in the SELECT.
        """
        columns = [column.read(f"{quoted(source)}.{column.quoted}") for column in self.columns]
        return ", ".join([*columns, f'{quoted(source)}."{ADDRESS}"'])

    @property
    def sources(self) -> dict[str, Any]:
        """Objects that generated statements read, by name."""
        return {SOURCE: AddressedTable(self.dataset)}

    def column(self, name: str) -> TargetColumn:
        """Return a column by its name, compared without case.

        Raises:
            InvalidInputError: The column does not exist, or several columns match.
        """
        if folded(name) in self.ambiguous:
            raise ambiguous_name(name, self.ambiguous[folded(name)], f"table {self.name}")
        for column in self.columns:
            if folded(column.name) == folded(name):
                return column
        raise unknown_column(name, [column.name for column in self.columns], f"table {self.name}")

    @cached_property
    def ambiguous(self) -> Mapping[str, list[str]]:
        """Columns whose names differ only by case or are different in SQL. See `ambiguous_columns`."""
        return ambiguous_columns(column.name for column in self.columns)

    @property
    def unambiguous(self) -> TargetTable:
        """The table without columns that a native table cannot have, and without columns in `ambiguous`."""
        columns = [c for c in self.columns if folded(c.name) not in self.ambiguous and not c.ambiguous]
        return self if len(columns) == len(self.columns) else replace(self, columns=columns)

    def refuse_ambiguous(self) -> None:
        """Reject columns that native tables do not support, because their names differ only by case.

        Raises:
            InvalidInputError: The table has such columns.
        """
        for name, names in self.ambiguous.items():
            raise ambiguous_name(name, names, f"table {self.name}")
        for column in self.columns:
            column.refuse_ambiguous(f"table {self.name}")

    def refuse_ambiguous_names(self, part: Clauses) -> None:
        """Reject a clause that uses a name that matches several columns or fields ignoring case.

        Raises:
            InvalidInputError: The clause uses an ambiguous name.
        """
        fields = {name: names for column in self.columns for name, names in column.ambiguous.items()}
        known = {**fields, **self.ambiguous}
        for token in part.tokens:
            if token.name is not None and folded(token.name) in known:
                raise ambiguous_name(token.name, known[folded(token.name)], f"table {self.name}")

    def named(self, names: Sequence[str]) -> list[TargetColumn]:
        """Return the columns with the given names, which must be distinct.

        Raises:
            InvalidInputError: A column does not exist, or a name is repeated.
        """
        columns = [self.column(name) for name in names]
        repeated = next((column.name for i, column in enumerate(columns) if column in columns[:i]), None)
        if repeated is not None:
            raise InvalidInputError(f"column {repeated!r} is named twice", where=f"table {self.name}")
        return columns

    def with_field_names(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return rows whose nested fields have the names of the table.

        If names differ only by case, a CAST to the column's type keeps the names of the source.
        """
        schema = self._renamed(rows.schema)
        if schema == rows.schema:
            return rows
        return pa.RecordBatchReader.from_batches(schema, (pa.record_batch(_Retyped(batch, schema)) for batch in rows))

    def named_as_stored(self, values: pa.Table) -> pa.Table:
        """Return a table whose nested fields have the names of this table. See `with_field_names`."""
        if self._renamed(values.schema) == values.schema:
            return values
        return self.with_field_names(values.to_reader()).read_all()

    def _renamed(self, schema: pa.Schema) -> pa.Schema:
        types = {column.name: column.arrow for column in self.columns}
        return pa.schema([field.with_type(_named_as(field.type, types.get(field.name))) for field in schema])

    def stored(self, values: pa.Table) -> pa.Table:
        """Return values from DuckDB in the table's types. DuckDB returns durations as microseconds.

        Raises:
            UnsupportedError: A struct or list contains durations.
        """
        if not any(column.arrow.num_fields or column.is_duration for column in self.columns):
            return values
        values = self.named_as_stored(values)
        for column in self.columns:
            place = values.schema.get_field_index(column.name)
            if place < 0:
                continue
            if _has_inner_duration(column.arrow):
                raise UnsupportedError(
                    "SQL cannot write durations inside structs, lists or maps",
                    where=f"table {self.name}, column {column.name}",
                    remedy="use update, merge_insert or insert of LanceDataset",
                )
            if column.is_duration:
                values = values.set_column(place, column.name, values.column(place).cast(pa.duration("us")))
        return values


def ambiguous_name(name: str, names: Sequence[str], where: str) -> InvalidInputError:
    """Return the error for a name that matches several columns or fields ignoring case."""
    return InvalidInputError(
        f"{name!r} matches several columns or fields that differ only in case",
        where=where,
        found=", ".join(map(repr, names)),
        remedy="rename one with LanceDataset.alter_columns, which is case-sensitive",
    )


def _ambiguous_fields(type_: pa.DataType) -> dict[str, list[str]]:
    if not type_.num_fields:
        return {}
    found: dict[str, list[str]] = {}
    for i in range(type_.num_fields):
        field = type_.field(i)
        found.setdefault(folded(field.name), []).append(field.name)
    found = {name: names for name, names in found.items() if len(names) > 1}
    for i in range(type_.num_fields):
        found |= _ambiguous_fields(type_.field(i).type)
    return found


@dataclass(frozen=True)
class _Retyped:
    """A batch with another schema of the same layout."""

    batch: pa.RecordBatch
    schema: pa.Schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.schema.__arrow_c_schema__(), self.batch.__arrow_c_array__()[1]


def _named_as(type_: pa.DataType, stored: pa.DataType | None) -> pa.DataType:
    """Return a type with the field names of the stored type. Types of another structure are returned unchanged."""
    if stored is None or not type_.num_fields or type_.num_fields != stored.num_fields:
        return type_
    if pa.types.is_struct(type_) and pa.types.is_struct(stored):
        if [folded(field.name) for field in type_] != [folded(field.name) for field in stored]:
            return type_
        pairs = zip(type_, stored, strict=True)
        return pa.struct([pa.field(new.name, _named_as(old.type, new.type), old.nullable) for old, new in pairs])
    if pa.types.is_map(type_) and pa.types.is_map(stored):
        key = type_.key_field.with_type(_named_as(type_.key_type, stored.key_type))
        return pa.map_(key, type_.item_field.with_type(_named_as(type_.item_type, stored.item_type)))
    if not hasattr(type_, "value_field") or not hasattr(stored, "value_field"):
        return type_
    item = type_.value_field.with_type(_named_as(type_.value_type, stored.value_type))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(item, type_.list_size)
    return (
        pa.list_(item) if pa.types.is_list(type_) else pa.large_list(item) if pa.types.is_large_list(type_) else type_
    )


def _has_inner_duration(type_: pa.DataType) -> bool:
    """Return whether a type contains nested durations."""
    inner = (type_.field(i).type for i in range(type_.num_fields))
    return any(pa.types.is_duration(each) or _has_inner_duration(each) for each in inner)


def dataset_of(snapshot: Snapshot) -> LanceDataset:
    """Return a dataset on an open version, which may exist only in memory."""
    return LanceDataset(snapshot.uri, table=TableScan(snapshot))


def visible(source: str) -> str:
    """Return SQL for the visible columns of a source with addresses."""
    return f'SELECT * EXCLUDE ("{ADDRESS}") FROM {quoted(source)}'  # noqa: S608
