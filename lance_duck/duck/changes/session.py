"""The connection as statements that change tables see it: what names mean, how DuckDB evaluates, how is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.cache import LruCache
from lance_duck.commit import run_again
from lance_duck.commit.operations import Append
from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.changes.block import TransactionBlock, hide, show
from lance_duck.duck.changes.parameters import StatementParameters
from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.target import SOURCE, TargetColumn, TargetTable, dataset_of, visible
from lance_duck.duck.names import Names
from lance_duck.duck.rules import spelling
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.edits import apply
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.duck.tables.table import DuckTable
from lance_duck.duck.user_scope import call_as_user
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.snapshot import Snapshot
from lance_duck.store.uri import join_uri
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.edits import RowEdits, edit_rows, write_edits
from lance_duck.verbs.writing.settings import WriteSettings
from lance_duck.verbs.writing.staged import commit_added, stage_append
from lance_duck.wire.paths import TABLE_SUFFIX

OpenRows = Callable[[TargetTable], "AbstractContextManager[pa.RecordBatchReader]"]
Evaluate = Callable[[TargetTable], tuple[RowEdits, ChangeResult]]

_SCHEMAS: Final[LruCache[tuple[str, ...]]] = LruCache(64)
_PLAN: Final = "lance_change"
_NOTE: Final = "The plan is that of the rows that would be changed. Nothing was written."
_PINNED: Final = "__lance_pinned"
_NOT_IN_NAMES: Final = frozenset("/\\\0")
_CLAUSES: Final = (
    "where group order limit offset fetch join inner left right full outer cross natural semi anti asof positional on "
    "using having window qualify union except intersect select tablesample at pivot unpivot returning when set"
)
_AFTER_TABLE: Final = frozenset(_CLAUSES.split())
_TABLE_FOLLOWS: Final = frozenset({"from", "join", "using", "into", ",", "(", "table"})


class PlannedQuery(Exception):  # noqa: N818
    """The end of a statement that is explained, with the plan of the query by which it finds its rows."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        super().__init__("explained")
        self.rows = [*rows, (_PLAN, _NOTE)]


@dataclass(frozen=True)
class ChangeSession:
    """One statement on one connection.

    Attributes:
        native: DuckDB's connection.
        catalog: The Lance tables that it knows.
        names: What names mean on it.
        parameters: The values of the statement.
        explain: The words of an EXPLAIN, which ends the statement at its first query; or nothing.
        block: The changes that are committed together with those of the statement; None: it commits its own.
    """

    native: duckdb.DuckDBPyConnection
    catalog: TableCatalog
    names: Names
    parameters: StatementParameters
    explain: str = ""
    block: TransactionBlock | None = None

    def is_ours(self, name: TableName) -> bool:
        """Return whether a name is that of a Lance table."""
        if self.block is not None and self.block.shadows(name.parts):
            return True
        return name.path is not None or self.names.are_ours(name.parts, later=True)

    def handle(self, name: TableName) -> TableHandle:
        """Return the handle of a Lance table."""
        handle = self.catalog.path_handle(name.path) if name.path is not None else self.catalog.find(name.name)
        assert handle is not None
        return handle

    def table(self, name: TableName, dataset: LanceDataset) -> TargetTable:
        """Return a table at a version, as a statement changes it."""
        table = TargetTable(name.name, dataset, ())
        arrow = dataset.schema
        types = _SCHEMAS.get(arrow.serialize().to_pybytes(), lambda: self._types(table))
        columns = [
            TargetColumn(field.name, type_, field.type, field.nullable)
            for field, type_ in zip(arrow, types, strict=True)
        ]
        return replace(table, columns=columns)

    def _types(self, table: TargetTable) -> tuple[str, ...]:
        relation = call_as_user(partial(self.native.sql, visible(SOURCE)), table.sources)
        return tuple(map(str, relation.types))

    def place_of(self, name: TableName) -> tuple[str, Mapping[str, str] | None]:
        """Return where a table of a name is, or would be, and the settings of its store.

        Raises:
            UnsupportedError: No folder is connected.
        """
        self.refuse_in_transaction("CREATE TABLE")
        if name.path is not None:
            return name.path, None
        folder = self.catalog.folder
        if folder is None:
            raise UnsupportedError(
                "no folder for new tables",
                where=name.name,
                remedy="lance_duck.connect(folder), or CREATE TABLE 'x.lance'",
            )
        if name.name in ("", ".", "..") or not _NOT_IN_NAMES.isdisjoint(name.name):
            raise InvalidInputError(
                "name of a table", where=repr(name.name), expected="no slash, backslash or zero byte", found=name.name
            )
        present = self.catalog.find(name.name)
        if present is not None:  # perhaps spelled in another case
            return present.uri, present.storage_options
        return join_uri(folder.uri, name.name + TABLE_SUFFIX), folder.storage_options

    def exists(self, uri: str, options: Mapping[str, str] | None) -> LanceDataset | None:
        """Return the table at a place, if there is one."""
        try:
            return LanceDataset(uri, storage_options=options)
        except NotFoundError:
            return None

    def refuse_in_transaction(self, statement: str) -> None:
        """Refuse, between BEGIN and COMMIT, what makes or drops tables. Raises UnsupportedError."""
        if self.block is not None:
            raise UnsupportedError(f"{statement} of a Lance table in a transaction", remedy="COMMIT first")

    # Evaluation by DuckDB.

    def relation(self, sql: str, tables: Mapping[str, Any]) -> Any:
        """Return the rows of a query as a relation.

        Args:
            sql: The query; it sees the variables of the caller, and Lance tables by name and path.
            tables: More tables, by name.
        """
        return self._call(self.native.sql, "params", sql, tables)

    def affected(self, sql: str, tables: Mapping[str, Any]) -> int:
        """Run a change of a table of DuckDB's own, and return the number of rows that it changed."""
        return int(self._call(self.native.execute, "parameters", sql, tables).fetchall()[0][0])

    def _call(self, method: Callable[..., Any], argument: str, sql: str, tables: Mapping[str, Any]) -> Any:
        statement = Statement.of(sql)
        spellings: tuple[spelling.Spelling, ...] = statement.result("spelling", spelling.find)
        ours = (each for each in spellings if each.name is None or self.names.are_ours(each.name, later=True))
        text = apply(sql, (each.edit for each in ours))
        paths = {path: DuckTable(self.catalog.path_handle(path).current, hidden=False) for path in statement.paths}
        values = self.parameters.used_by(text)
        return call_as_user(partial(method, text, **{argument: values}), {**paths, **tables})

    def arrow(self, sql: str, tables: Mapping[str, Any]) -> pa.Table:
        """Return the rows of a query; see `relation`."""
        self.explain_query(sql, tables)
        table: pa.Table = call_as_user(self.relation(sql, tables).to_arrow_table, tables)
        return table

    def explain_query(self, sql: str, tables: Mapping[str, Any]) -> None:
        """End an EXPLAIN with the plan of a query, by PlannedQuery."""
        if self.explain:
            relation = self.relation(f"{self.explain} {sql}", tables)
            raise PlannedQuery(call_as_user(relation.fetchall, tables))

    @contextmanager
    def stream(self, sql: str, tables: Mapping[str, Any], table: TargetTable) -> Iterator[pa.RecordBatchReader]:
        """Open the rows of a query in batches, as a table takes them.

        The connection can run nothing else meanwhile: DuckDB 1.x would end the rows without a word.
        """
        self.explain_query(sql, tables)
        reader = call_as_user(self.relation(sql, tables).to_arrow_reader, tables)
        try:
            has_durations = any(pa.types.is_duration(column.arrow) for column in table.columns)
            yield table.stored(reader.read_all()).to_reader() if has_durations else reader
        finally:
            reader.close()

    def run(self, sql: str, tables: Mapping[str, Any] | None = None) -> None:
        """Run a statement of our own that has no parameters."""
        call_as_user(partial(self.native.sql, sql), tables or {})

    @contextmanager
    def pinned(
        self, table: TargetTable, name: TableName, *parts: Clauses
    ) -> Iterator[tuple[list[str], dict[str, Any]]]:
        """Make all mentions of a table in clauses mean one version of it.

        Args:
            table: The table at that version.
            name: Its name in the statement.
            parts: Clauses.

        Yields:
            The text of each clause, and the tables that it reads.
        """
        place = self.handle(name).place
        spelled = [self.respelled(part, place, name.name, _PINNED) for part in parts]
        tables = table.sources
        pin = DuckTable(lambda: table.dataset, pinned=True, hidden=False)
        if any(_PINNED in text for text in spelled):
            tables[_PINNED] = pin
        if name.path is not None or not any(_mentions(part, name.name) for part in parts):
            yield spelled, tables
            return
        is_shown = self.block is not None and self.block.is_shown
        if is_shown or not self.names.are_ours((name.name,), later=True):
            yield spelled, tables
            return
        show(self.native, name.name, pin)
        try:
            yield spelled, tables
        finally:
            hide(self.native, name.name)

    def respelled(self, part: Clauses, place: str, name: str, source: str) -> str:
        """Return the text of a clause, in which a table is not called by its path or a qualified name any more.

        Args:
            part: The clause.
            place: Where the table is.
            name: Its unqualified name, which stays.
            source: What the table is called instead where it is read.
        """
        text, start = part.text, part.start
        at, shift = 0, 0
        while at < len(part):
            mention = TableName.at(part, at)
            if mention is None or part.text_at(at - 1) == ".":
                at += 1
                continue
            at = mention.after
            edit = self._respelling(part, mention, place, name, source)
            if edit is not None:
                first, (end, spelled) = part.tokens[mention.first].start - start + shift, edit
                end += shift - start
                text = text[:first] + spelled + text[end:]
                shift += len(spelled) - (end - first)
        return text

    def _respelling(
        self, part: Clauses, mention: TableName, place: str, name: str, source: str
    ) -> tuple[int, str] | None:
        """Return where a mention of a table ends, and how it is spelled instead; None for all other names."""
        if mention.path is not None:
            is_table = part.text_at(mention.first - 1).lower() in _TABLE_FOLLOWS
            if not is_table or self.catalog.path_handle(mention.path).place != place:
                return None
            return part.tokens[mention.after - 1].end, quoted(source) + _alias(part, mention.after, mention.name)
        for size in range(len(mention.parts), 1, -1):
            parts = mention.parts[:size]
            if not self.catalog.is_table(parts) or not self.names.are_ours(parts, later=True):
                continue
            handle = self.catalog.find(parts[-1])
            if handle is None or handle.place != place:
                continue
            end = part.tokens[mention.first + 2 * (size - 1)].end
            if size < len(mention.parts):
                return end, quoted(name)
            return end, quoted(source) + _alias(part, mention.after, name)
        return None

    # Commits.

    def change(self, name: TableName, evaluate: Evaluate, predicate: str = "") -> ChangeResult:
        """Edit the rows of a table as one new version, or none where there is nothing to do.

        Args:
            name: The table.
            evaluate: Returns the edits of a version, and what the statement gives; runs again after a lost race.
            predicate: Which rows are deleted, as SQL.
        """
        handle = self.handle(name)
        if self.block is not None:
            pending = self.block.changes_of(handle, name.name)
            edits, result = evaluate(self.table(name, dataset_of(pending.current)))
            if not edits.is_empty:
                with UncommittedFiles(pending.current) as draft:
                    pending.apply(write_edits(pending.current, edits, draft, predicate).operation, edits.guard)
            return result

        def attempt(snapshot: Snapshot) -> tuple[Snapshot | None, ChangeResult]:
            edits, result = evaluate(self.table(name, dataset_of(snapshot)))
            return None if edits.is_empty else edit_rows(snapshot, edits, predicate), result

        after, result = run_again(handle.current().handle.base, attempt)
        if after is not None:
            handle.move_to(after)
        return result

    def append(
        self, name: TableName, rows: Callable[[TargetTable], AbstractContextManager[pa.RecordBatchReader]]
    ) -> int:
        """Add rows to a table as one new version, or none where there are no rows; return how many there were."""
        handle = self.handle(name)
        pending = None if self.block is None else self.block.changes_of(handle, name.name)
        snapshot = handle.current().handle.base if pending is None else pending.current
        settings = WriteSettings()
        with rows(self.table(name, dataset_of(snapshot))) as reader:
            staged = stage_append(reader, snapshot, settings)
        if staged.fragments and pending is not None:
            pending.apply(Append(staged.fragments))
        elif staged.fragments:
            handle.move_to(commit_added(staged, snapshot, settings))
        return sum(fragment.physical_rows for fragment in staged.fragments)


def _alias(part: Clauses, after: int, name: str) -> str:
    """Return an alias for a table that is read under another name, unless the statement gives one."""
    is_named = after < len(part) and part.tokens[after].name is not None and part.word(after) not in _AFTER_TABLE
    return "" if is_named else f" AS {quoted(name)}"


def _mentions(part: Clauses, name: str) -> bool:
    """Return whether a name stands in a clause as that of a table could: unqualified, and qualifying nothing."""
    return any(
        token.name is not None
        and folded(token.name) == folded(name)
        and part.text_at(place - 1) != "."
        and part.text_at(place + 1) != "."
        for place, token in enumerate(part.tokens)
    )
