"""MERGE INTO, run on a shadow of the rows that the source matches, and committed by `verbs.rows.edits`.

    MERGE INTO t [[AS] a] USING source ON … | USING (c, …)
        WHEN MATCHED | NOT MATCHED [BY TARGET] | NOT MATCHED BY SOURCE [AND …]
            THEN UPDATE … | DELETE | INSERT … | DO NOTHING | ERROR …
        [RETURNING …]

A MERGE that only sets columns from the source and the matching row runs without a shadow: see `join`. The shadow has an
additional column, so INSERT and UPDATE by position get column lists. With BY SOURCE, or if a clause reads the table
itself, the shadow contains all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import duckdb
import pyarrow as pa

from lance_duck.duck.changes.merge.defaults import merged_defaults, with_vectors
from lance_duck.duck.changes.merge.join import MergeJoin, Rows, values_of_source
from lance_duck.duck.changes.merge.keys import KeyPair, SourceKeys
from lance_duck.duck.changes.merge.source import MERGE_SOURCE, MergeSourceRows, merge_source
from lance_duck.duck.changes.result import ChangeResult, counted
from lance_duck.duck.changes.rows.ambiguous import refuse_ambiguous
from lance_duck.duck.changes.rows.defaults import default_values, left_out, with_defaults
from lance_duck.duck.changes.rows.insert import EFFECTS
from lance_duck.duck.changes.rows.joined import refuse_same_name
from lance_duck.duck.changes.rows.mentions import mentioned, refuse_identifiers, without_address
from lance_duck.duck.changes.rows.returning import returned_by
from lance_duck.duck.changes.rows.shadow import SHADOW, changed_shadow, insert_guard, shadow
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.target import ADDRESS, SOURCE, TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.tables.row_identifier_columns import ROW_IDENTIFIERS
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.verbs.rows.edits import RowEdits

_KEYS: Final = "__lance_merge_keys"
_UNNAMED: Final = "unnamed_subquery"
_JOINS: Final = frozenset(
    ["join", "inner", "left", "right", "full", "outer", "cross", "natural", "semi", "anti", "asof", "positional"]
)
_MOST_PAIRS: Final = 100_000_000
"""Maximum number of row pairs for a nested loop over source and shadow: 0.1 s for the condition `t.id = s.id`."""
_MATCHES_ONCE: Final = duckdb.__version__.startswith("2.0.0")
"""Whether DuckDB rejects table rows that match several source rows. In 1.5 and 2.0.1, the last match wins."""


@dataclass(frozen=True)
class MergeStatement(TableStatement):
    """A MERGE. The text of each clause begins with its keyword.

    Attributes:
        ctes: WITH.
        alias: Name of the table in the statement.
        source: The text after USING.
        source_alias: Name of the source in the statement. Empty for joined tables.
        join: The ON clause, or USING with columns.
        actions: Each WHEN.
        returning: RETURNING, or nothing.
    """

    key_remedy: ClassVar[str] = "remove the duplicates from the source, or match rows by the primary key in ON"

    ctes: Clauses
    alias: str
    source: Clauses
    source_alias: str
    join: Clauses
    actions: tuple[Clauses, ...]
    returning: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> MergeStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        target = TableName.at(body, 2) if body.says(0, "merge", "into") else None
        if target is None:
            return None
        alias, using = target.alias(body, "using")
        when = [i for i in range(len(body)) if body.word(i) == "when" and body.depths[i] == 0]
        joins = (
            [i for i in range(using + 1, when[0]) if body.word(i) in ("on", "using") and body.depths[i] == 0]
            if when
            else []
        )
        if body.word(using) != "using" or not joins:
            return None
        end = body.find("returning", start=when[-1])
        end = len(body) if end < 0 else end
        source = body.part(using + 1, joins[-1])
        actions = [body.part(start, stop) for start, stop in zip(when, [*when[1:], end], strict=True)]
        name = _alias_of(source) or ""
        join = body.part(joins[-1], when[0])
        return cls(target, head.ctes, alias, source, name, join, tuple(actions), body.part(end))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Merge the source into the table."""
        return session.change(self.target, lambda table: self.edits(session, table))

    def edits(self, session: ChangeSession, table: TargetTable) -> tuple[RowEdits, ChangeResult]:
        """Run the MERGE on a shadow of a version."""
        refuse_same_name(self.ctes, self.target)
        if not self.source_alias:
            raise UnsupportedError(
                "MERGE cannot read a join in USING directly",
                where=f"table {table.name}",
                remedy="wrap the join in a subquery: USING (SELECT …) AS s",
            )
        clauses = (self.ctes, self.source, self.join, *self.actions)
        refuse_ambiguous(table, self.alias, (*clauses[2:], self.returning))
        with (
            session.pinned(table, self.target, *clauses) as ((ctes, source, join, *actions), tables),
            merge_source(session, ctes, source, tables, self._values_of_source(session, table, actions)) as rows,
        ):
            return self._merged(session, table, ctes, join, actions, rows, tables)

    def _values_of_source(self, session: ChangeSession, table: TargetTable, actions: Sequence[str]) -> Sequence[str]:
        """Return expressions to compute while the source is read.

        Returns an empty sequence if computing them early might change the outcome.
        """
        if session.block is not None or session.explain or self.returning.tokens or not self.key_pairs:
            return ()  # an error would end the transaction
        if folded(self.source_alias) == folded(self.alias):
            return ()
        if any(token.word in EFFECTS for token in (*self.ctes.tokens, *self.source.tokens)):
            return ()
        return values_of_source(table, self.source_alias, actions)

    def _merged(
        self,
        session: ChangeSession,
        table: TargetTable,
        ctes: str,
        join: str,
        actions: Sequence[str],
        source: MergeSourceRows,
        tables: dict[str, Any],
    ) -> tuple[RowEdits, ChangeResult]:
        """Run the MERGE for a source that was read."""
        names = [column.name for column in source.columns]
        if ROW_IDENTIFIERS.isdisjoint(map(folded, names)):
            refuse_identifiers(table, (self.join, *self.actions))
        join, *actions = (without_address(table, self.alias, text) for text in (join, *actions))
        actions = [self._spelled(table, part, text, names) for part, text in zip(self.actions, actions, strict=True)]
        keys = self._source_keys(session, table, names, tables)
        merge = None
        if not self.returning.tokens and folded(self.source_alias) != folded(self.alias):
            merge = MergeJoin.of(table, self.alias, self.source_alias, source.columns, actions)
        joined = None if merge is None else self._joined(session, table, ctes, join, merge, keys, source, tables)
        if joined is not None:
            return with_vectors(table, actions, names, joined[0]), joined[1]
        if keys is not None and not self._reads_all:
            tables = {**tables, SOURCE: keys.rows()}
        defaults = default_values(session, table, merged_defaults(table, actions, names))
        whole, table = table, self._read(table, (join, *actions), names, defaults)
        matched = self._matched(session, table, ctes, join, tables)
        join = self._nested_loop(session, table, join, matched.num_rows, tables)
        when = "".join(actions)
        with shadow(session, table, matched, defaults=defaults):
            target = f"{SHADOW} AS {quoted(self.alias)} USING {MERGE_SOURCE} AS {quoted(self.source_alias)}\n{join}"
            sql = f"{ctes}MERGE INTO {target}{when}"
            if self.returning.tokens:
                result = returned_by(session, [sql], self.returning, table, self.alias, tables)
            else:
                result = counted(session.affected(sql, tables))
            edits = changed_shadow(session, table, matched, self.keys)
        return with_vectors(whole, actions, names, edits), result

    def _read(
        self, table: TargetTable, clauses: Sequence[str], source: Sequence[str], defaults: Collection[str]
    ) -> TargetTable:
        """Return the table with only the columns that the statement mentions, for its shadow.

        Args:
            table: The table.
            clauses: The texts of ON and WHEN.
            source: The columns of the source.
            defaults: Columns that get their DEFAULT.
        """
        for place, token in enumerate(self.returning.tokens):
            is_row = folded(token.name or "") == folded(self.alias) and self.returning.text_at(place + 1) != "."
            if is_row or token.text == "*":
                return table
        inserts = any(part.word(part.find("then") + 1) == "insert" for part in self.actions)
        more = [column.name for column in table.columns if inserts and not column.nullable]
        if any(part.find("by", "name") >= 0 for part in self.actions):
            more += source
        return mentioned(table, (*clauses, self.returning.text), *more, *defaults)

    def _nested_loop(
        self, session: ChangeSession, table: TargetTable, join: str, rows: int, tables: Mapping[str, Any]
    ) -> str:
        """Return an ON clause that DuckDB does not run as a hash join, if a hash join would lose arrays.

        Args:
            session: The statement.
            table: The table, with the columns of its shadow.
            join: ON or USING.
            rows: The number of rows of the shadow.
            tables: Tables that the statement reads.

        Raises:
            UnsupportedError: Too many row pairs would be compared, or the join has USING.
        """
        if not any(column.is_lost_by_joins for column in table.columns):
            return join
        source = session.arrow(f"SELECT count(*) FROM {MERGE_SOURCE}", tables).column(0)[0].as_py()  # noqa: S608
        if self.join.word(0) == "using" or rows * source > _MOST_PAIRS:
            raise UnsupportedError(
                f"this MERGE has too many rows for a table with ARRAY columns in DuckDB {duckdb.__version__}",
                where=f"table {table.name}, {rows} candidate rows and {source} source rows",
                remedy="upgrade to DuckDB 2.0.1, or merge fewer rows at a time with a stricter ON",
            )
        return f"ON ({Clauses.of(join).part(1).text}\n) IS TRUE\n"

    @property
    def keys(self) -> tuple[str, ...] | None:
        """Key columns of the table if rows match only by equality, otherwise None."""
        pairs = self.key_pairs
        return None if pairs is None else tuple(mine for mine, _ in pairs)

    @cached_property
    def key_pairs(self) -> tuple[KeyPair, ...] | None:
        """Key columns of the table, each with the source column that it is compared with."""
        if self.join.word(0) == "using":
            names = [part.tokens[0].name for part in self.join.part(2, self.join.closer(1)).split()]
            return tuple((name, name) for name in names if name is not None)
        pairs = []
        for part in _conjuncts(self.join.part(1)):
            sides = [TableName.at(part, 0), TableName.at(part, 4)] if len(part) == 7 and part.text_at(3) == "=" else []
            named = [side for side in sides if side is not None and len(side.parts) == 2]
            mine = [side.name for side in named if folded(side.parts[0]) == folded(self.alias)]
            theirs = [side.name for side in named if folded(side.parts[0]) != folded(self.alias)]
            if len(mine) != 1 or len(theirs) != 1:
                return None
            pairs.append((mine[0], theirs[0]))
        return tuple(pairs)

    def _source_keys(
        self, session: ChangeSession, table: TargetTable, names: Sequence[str], tables: Mapping[str, Any]
    ) -> SourceKeys | None:
        """Return the source's keys if rows match by keys alone, and `merge_insert` compares keys like DuckDB."""
        if MERGE_SOURCE not in tables or folded(self.source_alias) == folded(self.alias):
            return None
        mine, theirs = ({folded(name): name for name in each} for each in ([c.name for c in table.columns], names))
        pairs = [(mine.get(folded(a), ""), theirs.get(folded(b), "")) for a, b in self.key_pairs or ()]
        if not pairs or not all(all(pair) for pair in pairs) or len(theirs) < len(names):
            return None
        return SourceKeys.of(session, table, tables[MERGE_SOURCE], pairs)

    def _joined(
        self,
        session: ChangeSession,
        table: TargetTable,
        ctes: str,
        join: str,
        merge: MergeJoin,
        keys: SourceKeys | None,
        source: MergeSourceRows,
        tables: dict[str, Any],
    ) -> tuple[RowEdits, ChangeResult] | None:
        """Merge by keys or by one join. Returns None if the statement needs a shadow or fails."""
        rows = None if keys is None else self._paired(session, table, merge, keys, source)
        if rows is None:
            rows = merge.rows(self._pairs(session, table, ctes, join, merge, tables))
        if rows is None:
            return None  # DuckDB reports the error for a row with several matches
        addresses, values, inserted, kept = rows
        values, inserted = table.named_as_stored(values), table.named_as_stored(inserted)
        if inserted.num_rows and not set(self.keys or ()) <= set(inserted.column_names):
            return None
        if inserted.num_rows:
            more = [column for column in left_out(table, ()) if column.name not in inserted.column_names]
            inserted = table.stored(with_defaults(session, table, inserted, inserted.num_rows, more))
        new = inserted if inserted.num_rows else None
        guard = None if new is None else insert_guard(table, inserted, self.keys)
        result = counted(len(addresses) + inserted.num_rows)
        return RowEdits(updated=addresses, values=values, old_values=kept, inserted=new, guard=guard), result

    def _paired(
        self, session: ChangeSession, table: TargetTable, merge: MergeJoin, keys: SourceKeys, source: MergeSourceRows
    ) -> Rows | None:
        """Return the rows of a merge by keys. Returns None if keys are not sufficient, or if a value fails."""
        matches = keys.matches(updates=merge.updated is not None, inserts=merge.inserted is not None)
        if matches is None:
            return None
        try:
            return merge.paired(session, table, source, matches, keys.values(matches))
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            if session.block is not None:
                raise  # the error ended the transaction
            return None

    def _pairs(
        self, session: ChangeSession, table: TargetTable, ctes: str, join: str, merge: MergeJoin, tables: dict[str, Any]
    ) -> pa.Table:
        """Return the rows of a merge by a join."""
        target, keys = SOURCE, self.keys
        plain = {folded(c.name) for c in table.columns if c.type == "VARCHAR" or pa.types.is_integer(c.arrow)}
        if keys and not SPEAKS_SOURCE and plain.issuperset(map(folded, keys)):
            # DuckDB 1 does not detect which side is larger, and may build its hash table from that side.
            named = [*{folded(name): name for name in (*keys, *merge.read)}.values(), ADDRESS]
            target, columns = _KEYS, ", ".join(f"{quoted(self.alias)}.{quoted(name)}" for name in named)
            source = f"{MERGE_SOURCE} AS {quoted(self.source_alias)}"
            sql = f"SELECT {columns} FROM {SOURCE} AS {quoted(self.alias)} SEMI JOIN {source} {join}"  # noqa: S608
            tables = {**tables, _KEYS: session.arrow(ctes + sql, tables)}
        return session.arrow(ctes + merge.query(MERGE_SOURCE, target, join, table.named(merge.read)), tables)

    @property
    def _reads_all(self) -> bool:
        """Whether clauses may refer to table rows without a match in the source."""
        is_whole = any(part.find("by", "source") >= 0 for part in self.actions)
        return is_whole or any(token.word == "select" for part in self.actions for token in part.tokens)

    def _matched(
        self, session: ChangeSession, table: TargetTable, ctes: str, join: str, tables: dict[str, Any]
    ) -> pa.Table:
        """Return the rows of the table for the shadow."""
        alias, source = quoted(self.alias), f"{MERGE_SOURCE} AS {quoted(self.source_alias)}"
        target = f"{SOURCE} AS {alias}"
        if not _MATCHES_ONCE and any(self._changes_matched(part) for part in self.actions):
            pairs = f'SELECT {alias}."{ADDRESS}" FROM {target} JOIN {source} {join}'  # noqa: S608
            if session.arrow(f"{ctes}{pairs}GROUP BY ALL HAVING count(*) > 1 LIMIT 1", tables).num_rows:
                raise InvalidInputError(
                    "MERGE: several rows of the source match one row of the table",
                    where=f"table {table.name}",
                    remedy="remove duplicates from the source, so that each row matches once",
                )
        if self._reads_all:
            return table.stored(session.arrow(f"SELECT {table.read_all(SOURCE)} FROM {SOURCE}", tables))  # noqa: S608
        columns = table.read_all(self.alias)
        sql = f"{ctes}SELECT {columns} FROM {target} SEMI JOIN {source} {join}"  # noqa: S608
        return table.stored(session.arrow(sql, tables))

    def _changes_matched(self, part: Clauses) -> bool:
        then = part.find("then")
        return part.word(1) == "matched" and part.word(then + 1) in ("update", "delete")

    def _spelled(self, table: TargetTable, part: Clauses, text: str, names: Sequence[str]) -> str:
        """Return a WHEN clause with an explicit column list in INSERT or UPDATE."""
        then = part.find("then")
        action = part.part(then + 1)
        columns = ", ".join(column.quoted for column in table.columns)
        values = [f"{quoted(self.source_alias)}.{quoted(name)}" for name in names]
        condition = text[: part.tokens[then].end - part.start] if text == part.text else text[: _then(text)]
        if action.word(0) == "insert" and action.word(1) == "values":
            return f"{condition} INSERT ({columns}) {text[len(condition) :].lstrip()[len('insert') :]}"
        if _is_positional(action, "insert"):
            return f"{condition} INSERT ({columns}) VALUES ({', '.join(values)})\n"  # noqa: S608
        if _is_positional(action, "update"):
            if len(values) != len(table.columns):
                raise InvalidInputError(
                    "MERGE: UPDATE by position", expected=f"{len(table.columns)} columns", found=len(values)
                )
            pairs = zip(table.columns, values, strict=True)
            return f"{condition} UPDATE SET {', '.join(f'{column.quoted} = {value}' for column, value in pairs)}\n"
        return text


def _then(text: str) -> int:
    clauses = Clauses.of(text)
    return clauses.tokens[clauses.find("then")].end


def _is_positional(action: Clauses, verb: str) -> bool:
    """Return whether an INSERT or UPDATE of a MERGE uses the source columns by position."""
    words = [token.text.lower() for token in action.tokens]
    forms = ([verb], [verb, "*"], [verb, "by", "position"], [verb, "set", "*"])
    return words in [list(form) for form in forms]


def _alias_of(source: Clauses) -> str | None:
    """Return the name of a source in a statement: the alias, or the last part of the qualified name."""
    name = TableName.at(source, 0)
    after = source.closer(0) + 1 if source.text_at(0) == "(" else name.after if name is not None else 1
    if name is not None and source.text_at(after) == "(":
        after = source.closer(after) + 1  # a function
    if after >= len(source):
        return _UNNAMED if name is None else name.name
    place = after + (source.word(after) == "as")
    if place >= len(source) or (place == after and source.word(place) in _JOINS):
        return None
    end = source.closer(place + 1) + 1 if source.text_at(place + 1) == "(" else place + 1
    return source.tokens[place].name if end >= len(source) else None


def _conjuncts(condition: Clauses) -> list[Clauses]:
    """Return the AND operands of a condition, which may be enclosed in parentheses."""
    while condition.text_at(0) == "(" and condition.closer(0) == len(condition) - 1:
        condition = condition.part(1, len(condition) - 1)
    places = [i for i in range(len(condition)) if condition.word(i) == "and" and condition.depths[i] == 0]
    return [
        condition.part(start, stop) for start, stop in zip([0, *(i + 1 for i in places)], [*places, None], strict=True)
    ]
