"""Services for statements that change tables: name lookup, evaluation by DuckDB, and commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.cache import LruCache
from lance_duck.commit import run_again
from lance_duck.commit.operations import Append
from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.changes.block import DuckTransaction, ShownTable, bind_name, unbind_name
from lance_duck.duck.changes.changed_tables import TransactionBlock
from lance_duck.duck.changes.clause_tables import (
    alias_of,
    declares,
    reads_table,
    unqualified_names,
    unqualified_reads,
)
from lance_duck.duck.changes.parameters import StatementParameters
from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.target import SOURCE, TargetColumn, TargetTable, dataset_of, visible
from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.explain import explained
from lance_duck.duck.full_text.match_columns import searched
from lance_duck.duck.names import Names, handle_of
from lance_duck.duck.restrictions.tables import restricted
from lance_duck.duck.row_identifiers.rewrite import with_row_identifiers
from lance_duck.duck.rules import spelling
from lance_duck.duck.run.parameters import ParameterValues
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.duck.statement.scope import TableRead
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import edited
from lance_duck.duck.tables.handle import TableHandle, VersionChoice
from lance_duck.duck.tables.statement_versions import with_one_version
from lance_duck.duck.tables.table import DuckTable
from lance_duck.duck.user_scope import call_as_user
from lance_duck.duck.wide_offsets import open_stream
from lance_duck.errors import LanceDuckError, NotFoundError, UnsupportedError
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.merge.primary_key import check_edits, stage_with_keys
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.edits import RowEdits, edit_rows, write_edits
from lance_duck.verbs.writing.settings import WriteSettings
from lance_duck.verbs.writing.staged import commit_added

OpenRows = Callable[[TargetTable], "AbstractContextManager[pa.RecordBatchReader]"]
Evaluate = Callable[[TargetTable], tuple[RowEdits, ChangeResult]]

_COLUMNS: Final[LruCache[tuple[TargetColumn, ...]]] = LruCache(64)
_PLAN: Final = "lance_change"
_NOTE: Final = "This is the plan that finds the rows to change. Nothing was written."
_PINNED: Final = "__lance_pinned"


def _nothing_to_run() -> None:
    raise AssertionError("the statement was not read from a text")


class PlannedQuery(Exception):  # noqa: N818
    """Raised by EXPLAIN to end the statement. Contains the plan of the query that finds the rows."""

    def __init__(self, rows: list[tuple[Any, ...]], note: str = _NOTE) -> None:
        super().__init__("explained")
        self.rows = [*rows, (_PLAN, note)]


@dataclass(frozen=True)
class ChangeSession:
    """One statement on one connection.

    Attributes:
        native: DuckDB's connection.
        catalog: The Lance tables of the connection.
        names: Resolves names on the connection.
        parameters: The values of the statement.
        explain: The words of an EXPLAIN. Empty without one. An EXPLAIN ends the statement at its first query.
        block: Changes to commit together. Without a block, the statement commits its own changes.
        checks_keys: Whether new rows are compared with the table's primary key.
        written: The statement as the user wrote it.
        run_as_written: Runs the statement in DuckDB, like a statement that does not change Lance tables.
    """

    native: duckdb.DuckDBPyConnection
    catalog: TableCatalog
    names: Names
    parameters: StatementParameters
    explain: str = ""
    block: TransactionBlock | None = None
    checks_keys: bool = True
    written: str = ""
    run_as_written: Callable[[], object] = _nothing_to_run

    def is_ours(self, name: TableName) -> bool:
        """Return whether a name refers to a Lance table."""
        return name.path is not None or self.names.are_ours(name.parts, later=True)

    def schema_of(self, name: TableName) -> DatabaseSchema | None:
        """Return the schema that contains the Lance table. Returns None for paths and other names."""
        return None if name.path is not None else self.names.schema_of(name.parts, later=True)

    def schema_of_new(self, name: TableName) -> DatabaseSchema | None:
        """Return the schema of Lance tables in which a table with this name would be created.

        Raises:
            NotFoundError: A Lance database does not have this schema.
        """
        place = None if name.path is not None else self.names.place_of_new(name.parts, later=True)
        if place is None or self.catalog.database(place[0]) is None:
            return None
        schema = self.catalog.schema(*place)
        if schema is None:
            raise NotFoundError(f"Schema with name {name.parts[-2]} does not exist!", where=f"table {name.name}")
        return schema

    def handle(self, name: TableName) -> TableHandle:
        """Return the handle of a Lance table."""
        if name.path is not None:
            return self.catalog.path_handle(name.path)
        handle = self.names.table(name.parts, later=True)
        assert handle is not None
        return handle

    def is_missing(self, name: TableName) -> bool:
        """Return whether neither a Lance table nor a native table or view has this name."""
        return name.path is None and isinstance(self.unknown_table(name), NotFoundError)

    def unknown_table(self, name: TableName) -> LanceDuckError:
        """Return the error for a name that must refer to a Lance table, but does not."""
        where = ".".join(name.parts)
        try:
            self.native.sql(f"FROM {'.'.join(map(quoted, name.parts))} LIMIT 0")
        except duckdb.Error:
            remedy = self.names.nearest_table(name.name)
            return self.catalog.missing_folder(where) or NotFoundError("no such table", where=where, remedy=remedy)
        return UnsupportedError("not a Lance table", where=where, found="a native table or view")

    def dataset(self, name: TableName) -> LanceDataset:
        """Return the version of a Lance table that statements read, including changes of the open transaction."""
        handle = self.handle(name)
        block = self.block_of(handle)
        changed = None if block is None else block.changed(handle)
        return handle.current() if changed is None else changed.dataset

    def table(self, name: TableName, dataset: LanceDataset) -> TargetTable:
        """Return a table at a version, for a statement that changes it."""
        arrow = dataset.schema

        def columns() -> tuple[TargetColumn, ...]:
            sources = TargetTable(name.name, dataset, ()).sources
            types = map(str, call_as_user(partial(self.native.sql, visible(SOURCE)), sources).types)
            pairs = zip(arrow, types, strict=True)
            return tuple(TargetColumn(field.name, type_, field.type, field.nullable) for field, type_ in pairs)

        return TargetTable(name.name, dataset, _COLUMNS.get(arrow.serialize().to_pybytes(), columns))

    def exists(self, uri: str, options: Mapping[str, str] | None) -> LanceDataset | None:
        """Return the table at a location, or None."""
        try:
            return LanceDataset(uri, storage_options=options)
        except NotFoundError:
            return None

    def block_of(self, handle: TableHandle) -> TransactionBlock | None:
        """Return the block that collects the changes of a table.

        Returns None without a block, and for a table that the block has created.
        """
        return None if self.block is None or self.block.is_new(handle) else self.block

    @property
    def transaction(self) -> DuckTransaction | None:
        """The transaction between BEGIN and COMMIT, or None."""
        return self.block if isinstance(self.block, DuckTransaction) else None

    def refuse_in_transaction(self, statement: str, handle: TableHandle | None = None) -> None:
        """Reject an operation between BEGIN and COMMIT that commits its own version.

        Args:
            statement: The statement.
            handle: Its table, which may be changed if the transaction has created it.

        Raises:
            UnsupportedError: A transaction is open.
        """
        if self.block is not None and (handle is None or not self.block.is_new(handle)):
            raise UnsupportedError(f"{statement} cannot run in a transaction", remedy="COMMIT or ROLLBACK first")

    # Evaluation by DuckDB.

    def relation(self, sql: str, tables: Mapping[str, Any]) -> Any:
        """Return the rows of a query as a relation.

        Args:
            sql: The query. It can refer to the caller's variables, and to Lance tables by name or path.
            tables: More tables, by name.
        """
        return self._call(self.native.sql, "params", sql, tables)

    def affected(self, sql: str, tables: Mapping[str, Any]) -> int:
        """Run a change of a native table and return its row count."""

        def run() -> int:
            return int(self._call(self.native.execute, "parameters", sql, tables).fetchall()[0][0])

        return with_one_version(run)

    def _call(self, method: Callable[..., Any], argument: str, sql: str, tables: Mapping[str, Any]) -> Any:
        sql = edited(sql, self.visible(sql))
        sql, identified = with_row_identifiers(sql, lambda read: self._table_read(read, tables))
        tables = {**tables, **identified}
        statement = Statement.of(sql)
        spellings: tuple[spelling.Spelling, ...] = statement.result("spelling", spelling.find)
        edits = self.names.spelled(spellings, later=True)
        paths = {path: DuckTable(self.catalog.path_handle(path).reader(), hidden=False) for path in statement.paths}

        def call(text: str, tables: Mapping[str, Any]) -> Any:
            values = self.parameters.used_by(text)
            return call_as_user(partial(method, text, **{argument: values}), {**paths, **tables})

        given, table_of = self.parameters.given, lambda read: self._table_read(read, tables)
        searches, columns = searched(statement, given, table_of)
        searches, fewer = restricted(statement, ParameterValues((), given), self.names, table_of, searches)
        if searches:
            left = (edit for edit in edits if not any(each.overlaps(edit.start, edit.end) for each in searches))
            with suppress(duckdb.BinderException):  # a name that only the original query can resolve
                text, tables_too = edited(sql, (*left, *searches)), {**tables, **columns, **fewer}
                if self.block is None or self._binds(text, {**paths, **tables_too}):
                    return call(text, tables_too)
        return call(edited(sql, edits), tables)

    def _binds(self, sql: str, tables: Mapping[str, Any]) -> bool:
        """Return whether DuckDB accepts a query. A rejected query would abort the transaction.

        The check runs on a separate cursor. Queries that use objects of the connection, such as temporary tables, count
        as rejected.
        """
        path = call_as_user(partial(self.native.sql, "SELECT system.main.current_setting('search_path')")).fetchall()[
            0
        ][0]
        with self.native.cursor() as cursor:
            try:
                cursor.execute(f"SET search_path = {literal(path)}")
                values, text = self.parameters.used_by(sql), f"EXPLAIN {sql.removeprefix(self.explain)}"
                call_as_user(partial(cursor.execute, text, parameters=values), tables).fetchall()
            except duckdb.Error:
                return False
        return True

    def _table_read(self, read: TableRead, tables: Mapping[str, Any]) -> DuckTable | None:
        """Return a Lance table that a query reads, at the requested version, or None for other tables."""
        name = read.name[0] if read.name and len(read.name) == 1 and not read.version else ""
        if (table := tables.get(name, tables.get(folded(name)))) is not None:
            return table if isinstance(table, DuckTable) else None
        handle = None if read.columns is not None else handle_of(read, self.catalog, self.names, later=True)
        return None if handle is None else DuckTable(handle.current, pinned=True)

    def arrow(self, sql: str, tables: Mapping[str, Any]) -> pa.Table:
        """Return the rows of a query. See `relation`."""
        self.explain_query(sql, tables)

        def read() -> pa.Table:
            return call_as_user(self.relation(sql, tables).to_arrow_table, tables)

        return with_one_version(read)

    def answer(self, sql: str, tables: Mapping[str, Any]) -> tuple[pa.Table, list[str], list[str]]:
        """Run a statement, and return its rows, column titles and column types.

        Titles of a SELECT may repeat. In other statements, DuckDB numbers repeated titles.
        """

        def read() -> tuple[pa.Table, list[str], list[str]]:
            relation = self.relation(sql, tables)
            rows = call_as_user(relation.to_arrow_table, tables)
            return rows, list(relation.columns), list(map(str, relation.types))

        return with_one_version(read)

    def bind(self, sql: str, tables: Mapping[str, Any]) -> None:
        """Bind a statement without running it. Raises duckdb.Error if DuckDB rejects it."""
        call_as_user(self.relation(f"EXPLAIN {sql}", tables).fetchall, tables)

    def keeps_order(self) -> bool:
        """Return whether DuckDB preserves insertion order."""
        setting = call_as_user(
            partial(self.native.sql, "SELECT system.main.current_setting('preserve_insertion_order')")
        )
        return bool(setting.fetchall()[0][0])

    def explain_query(self, sql: str, tables: Mapping[str, Any]) -> None:
        """End an EXPLAIN with the plan of a query, by raising PlannedQuery."""
        if self.explain:

            def run(text: str) -> list[tuple[Any, ...]]:
                rows: list[tuple[Any, ...]] = call_as_user(self.relation(text, tables).fetchall, tables)
                return rows

            text = f"{self.explain} {sql}"
            raise PlannedQuery(explained(text, run) or run(text))

    def explain_words(self, note: str) -> None:
        """End an EXPLAIN with a description of the statement's effect, by raising PlannedQuery."""
        if self.explain:
            raise PlannedQuery([], note)

    @contextmanager
    def stream(self, sql: str, tables: Mapping[str, Any], table: TargetTable) -> Iterator[pa.RecordBatchReader]:
        """Open the rows of a query in batches, in the form that the table stores.

        The connection must not be used while the reader is open. DuckDB 1.x would silently truncate the rows.
        """
        self.explain_query(sql, tables)
        with self.stream_of(lambda: self.relation(sql, tables), tables) as reader:
            has_durations = any("duration" in str(column.arrow) for column in table.columns)
            yield table.stored(reader.read_all()).to_reader() if has_durations else table.with_field_names(reader)

    @contextmanager
    def stream_of(self, relation: Callable[[], Any], tables: Mapping[str, Any]) -> Iterator[pa.RecordBatchReader]:
        """Open the rows of a relation in batches. See `stream`.

        Args:
            relation: Returns the relation to read.
            tables: Tables that the relation reads.
        """
        with open_stream(self.native):
            reader: pa.RecordBatchReader = with_one_version(lambda: call_as_user(relation().to_arrow_reader, tables))
            with reader:
                yield reader

    def run(self, sql: str, tables: Mapping[str, Any] | None = None) -> None:
        """Run a statement of this package, without parameters."""
        call_as_user(partial(self.native.sql, sql), tables or {})

    @contextmanager
    def pinned(
        self, table: TargetTable, name: TableName, *parts: Clauses
    ) -> Iterator[tuple[list[str], dict[str, Any]]]:
        """Pin all mentions of a table in clauses to one version.

        Args:
            table: The table at that version.
            name: Its name in the statement.
            parts: The clauses. Clauses that read the table must not use columns in `TargetTable.ambiguous`.

        Yields: The text of each clause, and the tables that it reads.
        """
        identity = self.handle(name).identity
        is_bare = not self.names.is_unique(name.name) and not any(declares(part, name.name) for part in parts)
        pin, tables = DuckTable(lambda: table.dataset, pinned=True, hidden=False), table.sources
        shown = ShownTable(identity, name.name, _PINNED, pin)
        spelled = [part.edited(self._respellings(part, shown, is_bare)) for part in parts]
        if any(_PINNED in text for text in spelled):
            tables[_PINNED] = pin
        for part, text in zip(() if table.unambiguous is table else parts, spelled, strict=False):
            if _PINNED in text or self._unqualified(identity, (part,)):
                table.refuse_ambiguous_names(part)
        names = [] if is_bare else self._unqualified(identity, parts)
        try:
            for each in names:
                bind_name(self.native, each, pin)
            yield spelled, {**tables, **dict.fromkeys(names, pin)}
        finally:
            for each in names:
                unbind_name(self.native, each)

    def _unqualified(self, identity: tuple[str, VersionChoice], parts: Sequence[Clauses]) -> list[str]:
        """Return the unqualified names with which clauses may read a table, except views of the transaction."""
        mentioned = {name for part in parts for name in unqualified_names(part)} & self.catalog.vocabulary.names
        names = [name for name in sorted(mentioned) if self.transaction is None or not self.transaction.is_shown(name)]
        handles = {name: self.names.table((name,), later=True) for name in names}
        return [name for name, handle in handles.items() if handle is not None and handle.identity == identity]

    def visible(self, sql: str) -> list[Edit]:
        """Return edits that make a statement read the transaction's versions, whichever names it uses."""
        tables = () if self.transaction is None else self.transaction.shown.values()
        part = Clauses.of(sql)
        return [edit for each in tables for edit in self._respellings(part, each, each.is_hidden)]

    def _respellings(self, part: Clauses, shown: ShownTable, is_bare: bool) -> Iterator[Edit]:
        """Yield edits of a clause that replace the path and names of a table.

        Args:
            part: The clause.
            shown: The table, and the view to read instead.
            is_bare: Whether the unqualified name is replaced, too.
        """
        at, bare = 0, unqualified_reads(part) if is_bare else ()
        while at < len(part):
            mention = TableName.at(part, at)
            if mention is None or part.text_at(at - 1) == ".":
                at += 1
                continue
            at = mention.after
            if (edit := self._respelling(part, mention, shown, mention.first in bare)) is not None:
                yield edit

    def _respelling(self, part: Clauses, mention: TableName, shown: ShownTable, is_bare: bool) -> Edit | None:
        """Return the edit that replaces one mention of a table. Returns None for other names."""
        start = part.tokens[mention.first].start
        if mention.path is not None:
            if (
                not reads_table(part, mention.first)
                or self.catalog.path_handle(mention.path).identity != shown.identity
            ):
                return None
            end = part.tokens[mention.after - 1].end
            return Edit(start, end, quoted(shown.view) + alias_of(part, mention, mention.name))
        if part.says(mention.after, "at") and part.text_at(mention.after + 1) == "(":
            return None  # a different version, which the name itself selects
        for size in range(len(mention.parts), 0 if is_bare else 1, -1):
            parts = mention.parts[:size]
            handle = self.names.table(parts, later=True)
            if handle is None or handle.identity != shown.identity:
                continue
            end = part.tokens[mention.first + 2 * (size - 1)].end
            if size < len(mention.parts):
                return Edit(start, end, quoted(shown.name))
            return Edit(start, end, quoted(shown.view) + alias_of(part, mention, shown.name))
        return None

    # Commits.

    def change(self, name: TableName, evaluate: Evaluate, predicate: str = "") -> ChangeResult:
        """Edit the rows of a table as one new version. Empty edits do not create a version.

        Args:
            name: The table.
            evaluate: Returns the edits of a version and the statement's result. Called again after a conflict.
            predicate: SQL condition of the deleted rows.
        """
        handle = self.handle(name)
        block = self.block_of(handle)
        if block is not None:
            pending = block.changes_of(handle, name.name)
            edits, result = evaluate(self.table(name, dataset_of(pending.current)))
            edits = self._checked(pending.current, edits, name)
            if not edits.is_empty:
                with UncommittedFiles(pending.current) as draft:
                    pending.apply(write_edits(pending.current, edits, draft, predicate).operation, edits.guard)
            return result

        current = handle.current()
        base = current.handle.base

        def attempt(snapshot: Snapshot) -> tuple[Snapshot | None, ChangeResult]:
            # Other code may move the caller's dataset to a different version meanwhile.
            is_current = snapshot is base and handle.given is None
            edits, result = evaluate(self.table(name, current if is_current else dataset_of(snapshot)))
            edits = self._checked(snapshot, edits, name)
            return None if edits.is_empty else edit_rows(snapshot, edits, predicate), result

        after, result = run_again(base, attempt)
        if after is not None:
            handle.move_to(after)
        return result

    def _checked(self, snapshot: Snapshot, edits: RowEdits, name: TableName) -> RowEdits:
        """Return edits whose primary keys are checked, unless the user turned the check off."""
        return check_edits(snapshot, edits, name.name) if self.checks_keys else edits

    def append(self, name: TableName, rows: OpenRows) -> int:
        """Append rows as one new version, and return their number. Zero rows do not create a version."""
        handle = self.handle(name)
        block = self.block_of(handle)
        pending = None if block is None else block.changes_of(handle, name.name)
        dataset = handle.current() if pending is None else dataset_of(pending.current)
        snapshot = dataset.handle.base
        if handle.given is not None:
            dataset = dataset_of(snapshot)  # other code may move the caller's dataset meanwhile
        settings = WriteSettings()
        with rows(self.table(name, dataset)) as reader:
            staged, keys = stage_with_keys(reader, snapshot, settings, name.name if self.checks_keys else None)
        if staged.fragments and pending is not None:
            pending.apply(Append(staged.fragments), None if keys is None else keys.guard)
        elif staged.fragments:
            guard = None if keys is None else keys.guard(snapshot, is_final=True)
            handle.move_to(commit_added(staged, snapshot, settings, guard=guard))
        return staged.num_rows
