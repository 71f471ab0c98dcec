"""INSERT, committed as an append by `write_dataset`, or for ON CONFLICT by `verbs.rows.edits`.

    INSERT [OR REPLACE | OR IGNORE] INTO t [AS a] [(c, …)] [BY NAME | BY POSITION] source
        [ON CONFLICT …] [RETURNING …]
    source    VALUES (e | DEFAULT, …), … | DEFAULT VALUES | SELECT …, also in parentheses

    SELECT …          →  SELECT CAST(c0 AS type of a) AS a, … FROM (SELECT …) AS source(c0, …), streamed to the writer
    VALUES (e, …), …  →  VALUES (CAST((e) AS type of a), …), …: each value has the type of its column, as in DuckDB

Unnamed columns and DEFAULT get the column's DEFAULT, or NULL without one (see `rows.defaults`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arrow.decimals import wide_decimal
from lance_duck.duck.changes.result import ChangeResult, counted
from lance_duck.duck.changes.rows.ambiguous import refuse_ambiguous
from lance_duck.duck.changes.rows.conflict import Upsert, conflict_keys, upserted
from lance_duck.duck.changes.rows.constants import ListedConstants, constant_rows
from lance_duck.duck.changes.rows.defaults import default_value, default_values, defaults_of, is_default, left_out
from lance_duck.duck.changes.rows.returning import result_of
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.target import TargetColumn, TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.tables.statement_versions import with_one_version
from lance_duck.errors import InvalidInputError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.verbs.rows.edits import RowEdits
from lance_duck.wire.schema import EMBEDDING_FUNCTIONS

if TYPE_CHECKING:
    from lance_duck import embedders
else:
    embedders = lazy.modules(globals(), "lance_duck", "embedders")

_ROWS: Final = "__lance_source"
_READ: Final = "__lance_read"
EFFECTS: Final = frozenset({"insert", "update", "delete", "merge", "nextval"})
"""Keywords of queries that may return different rows when run twice. Such sources are read once."""


@dataclass(frozen=True)
class InsertStatement(TableStatement):
    """An INSERT. Missing clauses are empty.

    Attributes:
        ctes: WITH.
        alias: The table's alias in ON CONFLICT.
        names: The column list after the table. Defaults to all columns.
        by_name: Whether columns of the source are matched by name.
        source: The source of the rows. Empty for DEFAULT VALUES.
        conflict: ON CONFLICT.
        instead: "replace" or "ignore" for OR REPLACE and OR IGNORE.
        returning: RETURNING.
        constants: The source, if it was read as a list of constants. `source` is then a placeholder.
    """

    ctes: Clauses
    alias: str
    names: tuple[str, ...] | None
    by_name: bool
    source: Clauses
    conflict: Clauses
    instead: str | None
    returning: Clauses
    constants: ListedConstants | None = None

    @classmethod
    def read(cls, head: StatementHead) -> InsertStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        instead = body.word(2) if body.word(1) == "or" else None
        place = 1 if instead is None else 3
        target = TableName.at(body, place + 1) if body.word(place) == "into" else None
        if target is None or instead not in (None, "replace", "ignore"):
            return None
        is_named = body.word(target.after) == "as" and target.after + 1 < len(body)
        alias = (body.tokens[target.after + 1].name if is_named else None) or target.name
        after = target.after + 2 * is_named
        names, after = _column_list(body, after)
        by_name = body.says(after, "by", "name")
        after += 2 if by_name or body.says(after, "by", "position") else 0
        conflict, returning = _conflict(body, after), body.find("returning", start=after)
        ends = [end for end in (conflict, returning, len(body)) if end >= 0]
        source = body.part(after, min(ends))
        if source.says(0, "default", "values"):
            source = body.part(len(body))
        elif not source.tokens:
            return None
        clause = body.part(conflict, min(end for end in ends if end > conflict)) if conflict >= 0 else None
        return cls(
            target,
            head.ctes,
            alias,
            names,
            by_name,
            source,
            body.part(len(body)) if clause is None else clause,
            instead,
            body.part(len(body)) if returning < 0 else body.part(returning),
        )

    @property
    def key_remedy(self) -> str:  # type: ignore[override]
        """Remedy for a repeated primary key."""
        if self._is_upsert:
            return "remove the duplicates, or name the primary key in ON CONFLICT"
        return "remove the duplicates, or use INSERT OR REPLACE, OR IGNORE or ON CONFLICT"

    def run(self, session: ChangeSession) -> ChangeResult:
        """Insert the rows."""
        if self._is_upsert:
            return session.change(self.target, lambda table: self._upserted(session, table))
        if not self.returning.tokens:
            return counted(session.append(self.target, lambda table: self.reader(session, table)))
        results: list[ChangeResult] = []

        @contextmanager
        def rows(table: TargetTable) -> Iterator[pa.RecordBatchReader]:
            inserted = self.rows(session, table)
            results.append(self.result(session, table, inserted))
            yield inserted.to_reader()

        session.append(self.target, rows)
        return results[0]

    @property
    def is_plain(self) -> bool:
        """Whether the rows do not depend on any table, and the statement does not have RETURNING."""
        asks = any(token.word in ("select", "from") for token in (*self.ctes.tokens, *self.source.tokens))
        return not (asks or self.conflict.tokens or self.instead or self.returning.tokens)

    def run_many(self, sessions: Sequence[ChangeSession]) -> tuple[ChangeResult, int]:
        """Insert the rows of several sets of parameters together.

        Returns:
            The result of the last set, and the total row count.
        """
        counts: list[int] = []

        @contextmanager
        def rows(table: TargetTable) -> Iterator[pa.RecordBatchReader]:
            tables = [self.rows(session, table) for session in sessions]
            counts[:] = [each.num_rows for each in tables]
            yield pa.concat_tables(tables).to_reader()

        sessions[0].append(self.target, rows)
        return counted(counts[-1]), sum(counts)

    def _upserted(self, session: ChangeSession, table: TargetTable) -> tuple[RowEdits, ChangeResult]:
        refuse_ambiguous(table, self.alias, (self.conflict, self.returning))
        rows = self.rows(session, table)
        upsert = Upsert(self.target, self.alias, self.conflict, self.instead, self.returning, self.by_name)
        return upserted(session, table, upsert, rows)

    def result(self, session: ChangeSession, table: TargetTable, inserted: pa.Table) -> ChangeResult:
        """Return the statement's result for the inserted rows."""
        refuse_ambiguous(table, table.name, (self.returning,))
        table = table.unambiguous
        for column in table.columns:
            if column.name not in inserted.column_names:
                inserted = inserted.append_column(column.name, pa.nulls(inserted.num_rows))
        return result_of(session, self.returning, table, table.name, inserted, inserted.num_rows)

    def rows(self, session: ChangeSession, table: TargetTable) -> pa.Table:
        """Return the rows to insert, in memory."""
        with self.reader(session, table) as reader:
            return reader.read_all()

    @contextmanager
    def reader(self, session: ChangeSession, table: TargetTable) -> Iterator[pa.RecordBatchReader]:
        """Open the rows to insert, in batches, with vectors that embedders make."""
        with self._opened(session, table) as rows:
            schema = table.dataset.handle.snapshot.schema
            is_plain = session.explain or EMBEDDING_FUNCTIONS not in schema.metadata
            yield rows if is_plain else embedders.with_embeddings(rows, schema)

    @contextmanager
    def _opened(self, session: ChangeSession, table: TargetTable) -> Iterator[pa.RecordBatchReader]:
        if self.constants is not None:
            with self._listed(session, table, self.constants) as reader:
                yield reader
            return
        rows = listed_rows(self.source)
        if not self.source.tokens:
            yield table.stored(self._default_row(session, table)).to_reader()
        elif rows is not None:
            yield table.stored(self._values(session, table, rows)).to_reader()
        else:
            with self._selected(session, table) as reader:
                yield reader

    @contextmanager
    def _listed(
        self, session: ChangeSession, table: TargetTable, listed: ListedConstants
    ) -> Iterator[pa.RecordBatchReader]:
        """Open rows of constants. DuckDB evaluates constants of other types, and rows with a stored DEFAULT."""
        columns = self._columns(table)
        _check_count(table, columns, len(listed.rows[0]))
        values = None if session.explain or defaults_of(table) else constant_rows(columns, listed.rows)
        if values is not None:
            yield table.stored(values).to_reader()
            return
        whole = replace(self, constants=None, source=Clauses.of(listed.source))
        with whole.reader(session, table) as reader:
            yield reader

    def _default_row(self, session: ChangeSession, table: TargetTable) -> pa.Table:
        """Return the row of DEFAULT VALUES. ON CONFLICT needs all columns, an append only those that are not null."""
        columns = left_out(table, ())
        if self._is_upsert:
            columns = [column for column in table.unambiguous.columns if wide_decimal(column.arrow) is None]
        columns = columns or list(table.columns[:1])
        columns += [column for column in table.columns if not column.nullable and column not in columns]
        values = default_values(session, table, {column.name for column in columns})
        row = session.arrow("SELECT " + ", ".join(default_value(column, values) for column in columns), {})
        return row.rename_columns([column.name for column in columns])

    @property
    def _is_upsert(self) -> bool:
        return bool(self.conflict.tokens) or self.instead is not None

    def _left_out(self, table: TargetTable, columns: Sequence[TargetColumn]) -> list[TargetColumn]:
        """Return the columns whose DEFAULT belongs to the source. Others are set by the shadow of ON CONFLICT."""
        found = left_out(table, columns)
        if not found or not self._is_upsert:
            return found
        keys = conflict_keys(table, self.conflict)
        return [column for column in found if column.name in keys]

    def _values(self, session: ChangeSession, table: TargetTable, rows: Sequence[Sequence[Clauses]]) -> pa.Table:
        columns: Sequence[TargetColumn] = self._columns(table)
        for row in rows:
            _check_count(table, columns, len(row))
        if defaults_of(table):
            columns, rows = self._with_defaults(session, table, columns, rows)
        texts = [[item.text.rstrip() for item in row] for row in rows]
        constants = None if self.ctes.tokens or session.explain else constant_rows(columns, texts)
        if constants is not None:
            return constants
        items = [item for row in rows for item in row]
        with session.pinned(table, self.target, self.ctes, *items) as ((ctes, *pinned), tables):
            values = ["NULL" if is_default(item) else text for item, text in zip(items, pinned, strict=True)]
            width = len(columns)
            lines = [
                ", ".join(
                    column.value(text) for column, text in zip(columns, values[start : start + width], strict=True)
                )
                for start in range(0, len(values), width)
            ]
            names = ", ".join(column.quoted for column in columns)
            sql = f"{ctes}SELECT * FROM (VALUES ({'), ('.join(lines)})) AS {_ROWS}({names})"  # noqa: S608
            return session.arrow(sql, tables).rename_columns([column.name for column in columns])

    def _with_defaults(
        self,
        session: ChangeSession,
        table: TargetTable,
        columns: Sequence[TargetColumn],
        rows: Sequence[Sequence[Clauses]],
    ) -> tuple[list[TargetColumn], list[list[Clauses]]]:
        """Return columns and items of VALUES, with the stored DEFAULT in place of the word and in added columns."""
        more = self._left_out(table, columns)
        used = {column.name for column in more}
        for row in rows:
            used.update(column.name for column, item in zip(columns, row, strict=True) if is_default(item))
        values = {name: Clauses.of(text) for name, text in default_values(session, table, used).items()}
        added = [values[column.name] for column in more]
        filled = [
            [
                values.get(column.name, item) if is_default(item) else item
                for column, item in zip(columns, row, strict=True)
            ]
            for row in rows
        ]
        return [*columns, *more], [[*row, *added] for row in filled]

    @contextmanager
    def _selected(self, session: ChangeSession, table: TargetTable) -> Iterator[pa.RecordBatchReader]:
        with session.pinned(table, self.target, self.ctes, self.source) as ((ctes, source), tables):
            text = f"{ctes}SELECT * FROM (\n{source}) AS {_ROWS}"  # noqa: S608
            inner = session.relation(text, tables)
            if any(token.word in EFFECTS for token in (*self.ctes.tokens, *self.source.tokens)):
                ctes, source, tables = "", f"FROM {_READ}\n", {**tables, _READ: with_one_version(inner.to_arrow_table)}
            columns = self._matched(table, inner.columns)
            more = self._left_out(table, columns)
            is_whole = not more and not session.explain
            if _READ not in tables and is_whole and _are_as_stored(table, columns, inner):
                with session.stream_of(lambda: inner, tables) as reader:
                    yield _named(reader, [column.name for column in columns])
                return
            names = [f"c{i}" for i in range(len(columns) + len(more))]
            rows = f"(\n{source}) AS {_ROWS}({', '.join(names[: len(columns)])})"
            if more:
                values = default_values(session, table, {column.name for column in more})
                added = ", ".join(f"({values[column.name]})" for column in more)
                rows = f"(SELECT *, {added} FROM {rows}) AS {_ROWS}({', '.join(names)})"  # noqa: S608
            written = [*columns, *more]
            casts = [column.cast(name) for column, name in zip(written, names, strict=True)]
            # If rows are inserted, the writer rejects these nulls.
            casts += [column.cast("NULL") for column in table.columns if not column.nullable and column not in written]
            sql = f"{ctes}SELECT {', '.join(casts)} FROM {rows}"  # noqa: S608
            with session.stream(sql, tables, table) as reader:
                yield reader

    def _matched(self, table: TargetTable, names: Sequence[str]) -> list[TargetColumn]:
        """Return the target column of each source column."""
        if self.by_name:
            if self.names is not None:
                raise InvalidInputError("INSERT BY NAME cannot have a column list", remedy="leave out the column list")
            return table.named(names)
        columns = self._columns(table)
        _check_count(table, columns, len(names))
        return columns

    def _columns(self, table: TargetTable) -> list[TargetColumn]:
        return list(table.columns) if self.names is None else table.named(self.names)


def _are_as_stored(table: TargetTable, columns: Sequence[TargetColumn], rows: Any) -> bool:
    """Return whether a relation has the types of the columns, and contains all columns that are not nullable.

    DuckDB 1 reports the type of NULL as INTEGER.
    """
    if not SPEAKS_SOURCE or [str(type_) for type_ in rows.types] != [column.type for column in columns]:
        return False
    needs_sql = any("duration" in str(column.arrow) for column in columns)
    return not needs_sql and all(column.nullable or column in columns for column in table.columns)


def _named(reader: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    """Return rows with renamed columns."""
    if reader.schema.names == list(names):
        return reader
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _column_list(body: Clauses, place: int) -> tuple[tuple[str, ...] | None, int]:
    """Read an optional column list in parentheses. Returns the names and the position after it."""
    if body.text_at(place) != "(":
        return None, place
    end = body.closer(place)
    parts = body.part(place + 1, end).split()
    names = [part.tokens[0].name for part in parts if len(part) == 1]
    if None in names or len(names) < len(parts):
        return None, place  # a query in parentheses
    return tuple(name for name in names if name is not None), end + 1


def _conflict(body: Clauses, start: int) -> int:
    """Return the position of ON CONFLICT, or -1. A join may also have an ON with a column named `conflict`."""
    place = body.find("on", "conflict", start=start)
    while place >= 0:
        after = place + 2 if body.text_at(place + 2) != "(" else body.closer(place + 2) + 1
        if body.says(after, "do") or (after > place + 2 and body.word(after) == "where"):
            return place
        place = body.find("on", "conflict", start=place + 1)
    return place


def _check_count(table: TargetTable, columns: Sequence[TargetColumn], values: int) -> None:
    if values != len(columns):
        raise InvalidInputError(
            "the number of values does not match the number of columns",
            where=f"table {table.name}",
            expected=f"{len(columns)} values",
            found=values,
        )


def listed_rows(source: Clauses) -> list[list[Clauses]] | None:
    """Return the items of `VALUES (…), …`. Returns None for other sources, or if more clauses follow."""
    if source.word(0) != "values":
        return None
    rows = source.part(1).split()
    if not all(row.text_at(0) == "(" and row.closer(0) == len(row) - 1 for row in rows):
        return None
    return [row.part(1, len(row) - 1).split() for row in rows]
