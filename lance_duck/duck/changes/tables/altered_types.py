"""New types of columns and fields, and new fields whose values DuckDB computes.

    ALTER c TYPE type [USING e]     →  SELECT CAST((e) AS type) AS c, <address> FROM t
    ALTER s.f TYPE type             →  SELECT CAST(s AS STRUCT(f type)) AS s, <address> FROM t
    ADD l.element.f type            →  SELECT CAST(l AS STRUCT(…, f type)[]) AS l, <address> FROM t
    ADD l.element.f type DEFAULT e  →  SELECT remap_struct(l, …) AS l, <address> FROM t
    ADD c type NOT NULL DEFAULT e   →  SELECT CAST((e) AS type) AS c, <address> FROM t

A native table with the same columns first runs the ALTER, so that DuckDB's errors and types are native. If Lance's cast
gives equal values, `alter_columns` casts without DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.types as pt

from lance_duck.arrow.types import is_list
from lance_duck.commit import run_again
from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.rows.shadow import SHADOW, columns_as_sql, temporary_table
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.tables.column_path import ColumnPath, is_struct
from lance_duck.duck.changes.target import ADDRESS, SOURCE, TargetTable, dataset_of
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.duck.wide_offsets import open_stream, run_with_wide_offsets
from lance_duck.errors import DataMismatchError, ReferencedError, UnsupportedError
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.columns.alteration import can_cast
from lance_duck.verbs.columns.rewritten import ColumnRewrite, added_field, retyped_field, rewrite_column
from lance_duck.verbs.columns.schema_change import path_of
from lance_duck.verbs.costs import ROWS_AT_ONCE
from lance_duck.wire.schema import Field, Schema
from lance_duck.write.relations import refuse_enums, relation_reader, with_narrow_offsets

_STORED_WHOLE: Final = ("map", "fixed_size_list:")
"""Beginnings of the logical types whose fields are written together."""


@dataclass(frozen=True)
class ColumnComputation:
    """A statement that computes values of one column.

    Attributes:
        session: The statement.
        target: The table.
        path: The column or field.
        subject: The table, for errors.
    """

    session: ChangeSession
    target: TableName
    path: ColumnPath
    subject: str

    def change_type(self, dataset: LanceDataset, kind: str, using: Clauses | None) -> None:
        """Give a column or field a new type. Columns that already have it do not change.

        Args:
            dataset: The table.
            kind: SQL of the type. Empty if USING determines it.
            using: The expression of USING, or None.
        """

        def plan(table: TargetTable, snapshot: Snapshot) -> tuple[ColumnRewrite, str] | None:
            with self._native(table):
                before = self._column_type()
                whole = kind if not self._below else type_with(before, self._below, lambda _: kind)
                value = "" if using is None else f" USING {_qualified(using, table)}"
                self.session.run(f"ALTER TABLE temp.main.{SHADOW} ALTER {self._column} TYPE {whole}{value}")
                after = self._column_type()
                if using is None and str(after) == str(before):
                    return None
                type_ = self._arrow_type()
            member = self._member(snapshot.schema)
            field = member.field(snapshot.schema, self.subject)
            rewrite = retyped_field(snapshot, field, _type_at(type_, member.names[1:]))
            if using is not None:
                return rewrite, f"CAST(({using.text}\n) AS {after})"
            (written,) = rewrite.part.fields
            is_whole = written == rewrite.schema.by_id(written.id)
            cast = str(after) if is_whole else type_with(before, self._below, lambda _: kind, only=True)
            return rewrite, f"CAST({self._column} AS {cast})"

        self._run(dataset, plan)

    def add(self, dataset: LanceDataset, field: pa.Field, kind: str, default: Clauses | None) -> None:
        """Add a column, or a field in a list or map, with values.

        Args:
            dataset: The table.
            field: The column or field.
            kind: SQL of its type.
            default: The expression of DEFAULT, or None.
        """
        name = self.path.name
        value = "NULL" if default is None else default.text

        def plan(table: TargetTable, snapshot: Snapshot) -> tuple[ColumnRewrite, str]:
            parent = self.path.parent(snapshot.schema, self.subject)
            rewrite = added_field(snapshot, parent, field)
            if parent is None:
                return rewrite, f"CAST(({value}\n) AS {kind})"
            with self._native(table):
                before = self._column_type()
            after = type_with(before, self._below[:-1], lambda struct: _grown(struct, name, kind))
            if default is None:
                return rewrite, f"CAST({self._column} AS {after})"
            defaults = f"{{{quoted(name)}: CAST(({value}\n) AS {kind})}}"
            mapping, defaults = _mapping(before, self._below[:-1], defaults, self.subject)
            return rewrite, f"remap_struct({self._column}, CAST(NULL AS {after}), {mapping}, {defaults})"

        self._run(dataset, plan)

    @property
    def _column(self) -> str:
        return quoted(self.path.names[0])

    @property
    def _below(self) -> tuple[str, ...]:
        return self.path.names[1:]

    @contextmanager
    def _native(self, table: TargetTable) -> Iterator[None]:
        """Create a native table with the columns of the table. Errors do not show generated SQL."""
        try:
            with temporary_table(self.session, columns_as_sql(table.unambiguous), table.name):
                yield
        except duckdb.Error as error:
            raise type(error)(str(error).partition("\n\nLINE ")[0]) from error

    def _member(self, schema: Schema) -> ColumnPath:
        """Return the path without the list or map whose items, keys or values change: these are replaced whole."""
        path = self.path
        while (parent := path.parent(schema, self.subject)) is not None and not is_struct(parent):
            path = ColumnPath(path.names[:-1], path.after)
        return path

    def _column_type(self) -> Any:
        return self.session.relation(f"SELECT {self._column} FROM temp.main.{SHADOW}", {}).types[0]  # noqa: S608

    def _arrow_type(self) -> pa.DataType:
        rows = self.session.relation(f"SELECT {self._column} FROM temp.main.{SHADOW}", {})  # noqa: S608
        with ExitStack() as opened:
            schema = relation_reader(rows, 1, opened).schema
        refuse_enums(schema)
        return schema.field(0).type

    def _run(
        self, dataset: LanceDataset, plan: Callable[[TargetTable, Snapshot], tuple[ColumnRewrite, str] | None]
    ) -> None:
        def attempt(snapshot: Snapshot) -> Snapshot:
            table = self.session.table(self.target, dataset_of(snapshot))
            planned = plan(table, snapshot)
            return snapshot if planned is None else self._rewrite(table, snapshot, *planned)

        dataset.handle.move_to(run_again(dataset.handle.snapshot, attempt))

    def _rewrite(self, table: TargetTable, snapshot: Snapshot, rewrite: ColumnRewrite, value: str) -> Snapshot:
        """Compute the values of a version, and commit them."""
        (column,) = rewrite.part.fields
        order = "" if self.session.keeps_order() else f' ORDER BY "{ADDRESS}"'
        sql = f'SELECT {value} AS {quoted(column.name)}, "{ADDRESS}" FROM {SOURCE} AS {quoted(table.name)}{order}'  # noqa: S608

        def write(is_wide: bool) -> Snapshot:
            with open_stream(self.session.native) as is_widened, ExitStack() as opened:
                reader = relation_reader(self.session.relation(sql, table.sources), ROWS_AT_ONCE, opened)
                narrow = with_narrow_offsets(reader) if is_wide or is_widened else reader
                return rewrite_column(snapshot, rewrite, self._checked(narrow, column))

        return run_with_wide_offsets(self.session.native, write)

    def _checked(self, rows: pa.RecordBatchReader, column: Field) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            if not column.nullable and batch.column(0).null_count:
                raise DataMismatchError(
                    f"NOT NULL constraint failed: {self.target.name}.{column.name}", where=self.subject
                )
            if _repeats_keys(batch.column(0)):
                raise DataMismatchError("Map keys must be unique.", where=f"{self.subject}, column {column.name}")
            yield batch


@contextmanager
def named_indexes(target: TableName, where: str) -> Iterator[None]:
    """Complete the error for an indexed column with the statement that drops the index."""
    try:
        yield
    except ReferencedError as error:
        table = quoted(target.name)
        drops = "; ".join(f"DROP INDEX {quoted(name)} ON {table}" for name in str(error.found).split(", "))
        remedy = f"{drops}; change the type, then CREATE INDEX again"
        raise ReferencedError(error.what, where=where, found=error.found, remedy=remedy) from error


def casts_equally(schema: Schema, field: Field, new: pa.DataType) -> bool:
    """Return whether `alter_columns` casts a field, with the same values as DuckDB's CAST."""
    return casts_alone(schema, field, new) and _is_exact(field.arrow_type, new)


def casts_alone(schema: Schema, field: Field, new: pa.DataType) -> bool:
    """Return whether `alter_columns` casts a field: its type has the same kind, and it is stored by itself."""
    above = path_of(schema, field.id)[:-1]
    is_alone = not any(each.is_packed or each.logical_type.startswith(_STORED_WHOLE) for each in above)
    return is_alone and not field.blob_version and can_cast(field.arrow_type, new)


def _is_exact(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether Arrow and DuckDB cast values equally. The types must be of the same kind."""
    if pt.is_dictionary(old):
        return _is_exact(old.value_type, new)
    if is_list(old) and is_list(new):
        return _is_exact(old.value_type, new.value_type)
    if pt.is_floating(old) and pt.is_floating(new):
        return bool(new.bit_width >= old.bit_width)
    if pt.is_decimal(old) and pt.is_decimal(new):
        is_wider = new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        return bool(is_wider or pt.is_decimal256(old))  # DuckDB does not read decimal256
    is_other = pt.is_integer(old) or not (pt.is_primitive(old) or pt.is_nested(old))
    return bool(old == new) or (is_other and can_cast(old, new))


def type_with(type_: Any, names: Sequence[str], change: Callable[[Any], str], *, only: bool = False) -> str:
    """Return SQL of a DuckDB type in which one of the types inside it is changed.

    Args:
        type_: The type.
        names: Path of the inner type: names of struct members, `element`, `key` and `value`.
        change: Returns SQL of the changed type.
        only: Whether structs on the path only keep the members on the path.
    """
    if not names:
        return change(type_)
    inner = _members(type_)
    found = next(name for name in inner if folded(name) == folded(names[0]))
    texts = {
        name: type_with(each, names[1:], change, only=only) if name == found else str(each)
        for name, each in inner.items()
    }
    if type_.id == "struct":
        kept = {found: texts[found]} if only else texts
        return f"STRUCT({', '.join(f'{quoted(name)} {text}' for name, text in kept.items())})"
    if type_.id == "map":
        return f"MAP({texts['key']}, {texts['value']})"
    return f"{texts['element']}[{dict(type_.children)['size'] if type_.id == 'array' else ''}]"


def _members(type_: Any) -> dict[str, Any]:
    """Return the types inside a DuckDB type, by their names in column paths."""
    if type_.id in ("list", "array"):
        return {"element": type_.children[0][1]}
    return dict(type_.children)


def _grown(struct: Any, name: str, kind: str) -> str:
    members = [*((each, str(type_)) for each, type_ in struct.children), (name, kind)]
    return f"STRUCT({', '.join(f'{quoted(each)} {text}' for each, text in members)})"


def _mapping(type_: Any, names: Sequence[str], default: str, where: str) -> tuple[str, str]:
    """Return the arguments of `remap_struct` that keep all values, and set a new member of a struct.

    Args:
        type_: Type of the column.
        names: Path of the struct.
        default: The new member with its value, as SQL of a struct.
        where: The table, for errors.

    Raises:
        UnsupportedError: The struct is inside a fixed-size list, which DuckDB does not support.
    """
    if not names:
        members = ", ".join(f"{quoted(name)}: {literal(name)}" for name, _ in type_.children)
        return f"{{{members}}}", default
    if type_.id == "array":
        raise UnsupportedError(
            "fields in fixed-size lists cannot have a DEFAULT",
            where=where,
            remedy="use ADD COLUMN without DEFAULT, then UPDATE",
        )
    inner = _members(type_)
    found = next(name for name in inner if folded(name) == folded(names[0]))
    below, defaults = _mapping(inner[found], names[1:], default, where)
    keys = {name: "list" if type_.id == "list" else name for name in inner}
    values = [
        f"{quoted(keys[name])}: " + (f"({literal(keys[name])}, {below})" if name == found else literal(keys[name]))
        for name in inner
    ]
    return f"{{{', '.join(values)}}}", f"{{{quoted(keys[found])}: {defaults}}}"


def _type_at(type_: pa.DataType, names: Sequence[str]) -> pa.DataType:
    """Return the Arrow type at a column path inside a type."""
    for name in names:
        if pt.is_struct(type_):
            type_ = next(type_.field(i).type for i in range(type_.num_fields) if _is(type_.field(i).name, name))
        elif pt.is_map(type_):
            type_ = type_.key_type if _is(name, "key") else type_.item_type
        else:
            type_ = type_.value_type
    return type_


def _repeats_keys(array: pa.Array) -> bool:
    """Return whether a map in the array has a key twice. DuckDB only checks this when it writes native tables."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pt.is_struct(array.type):
        return any(map(_repeats_keys, array.flatten()))
    if not pt.is_map(array.type):
        return hasattr(array.type, "value_field") and _repeats_keys(array.flatten())
    entries = array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))
    rows, entries = entries.value_parent_indices(), entries.flatten()
    keys, items = entries.flatten()
    if not pt.is_nested(keys.type):
        pairs = pa.table({"row": rows, "key": keys}).group_by(["row", "key"]).aggregate([])
        if pairs.num_rows < len(keys):
            return True
    return _repeats_keys(keys) or _repeats_keys(items)


def _is(name: str, other: str) -> bool:
    return folded(name) == folded(other)


def _qualified(part: Clauses, table: TargetTable) -> str:
    """Return an expression whose columns are qualified with `SHADOW` instead of the name of the table."""
    if any(_is(column.name, table.name) for column in table.columns):
        return part.text
    return part.edited(
        Edit(token.start, token.end, SHADOW)
        for place, token in enumerate(part.tokens)
        if token.name is not None
        and _is(token.name, table.name)
        and part.text_at(place + 1) == "."
        and part.text_at(place - 1) != "."
    )
