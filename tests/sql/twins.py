"""The same tables in Lance and in DuckDB, and what statements do to both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import duckdb
import lance
import pyarrow as pa
from sql.random_changes import Sample
from sql.random_queries import Tables

import lance_duck as ld
from lance_duck.duck.statement.edits import apply
from lance_duck.duck.statement.nearest_clause import KNOWS_NEAREST, nearest_clauses
from lance_duck.duck.statement.tokens import tokens_of
from lance_duck.errors import LanceDuckError

REFUSED: Final = (duckdb.Error, LanceDuckError)
WITHOUT_EQUAL: Final = ("same kind", "is indexed", "; write with data_storage_version='2.2'")
"""Words in ALTER errors: Lance casts only related types and unindexed columns; 2.1 cannot store maps."""
FAULT: Final = "Cannot cast list with length 0 to array"
"""Error of DuckDB 2.0.0 in MERGE with arrays on native tables, for some source orders."""
_KEY: Final = {b"lance-schema:unenforced-primary-key": b"true"}
_TYPES: Final = (
    "id INTEGER NOT NULL, a INTEGER, s VARCHAR, d DOUBLE, dec DECIMAL(10,2), ts TIMESTAMP, tz TIMESTAMPTZ, dt DATE, "
    "tm TIME, b BOOLEAN, bl BLOB, u UUID, l INTEGER[], st STRUCT(x INTEGER, y VARCHAR), "
    "ls STRUCT(p INTEGER, q VARCHAR[])[], arr FLOAT[2]"
)
_FIRST: Final = (
    "SELECT i, CASE WHEN i % 6 <> 5 THEN i % 7 END, ['a', 'bb', NULL, 'x', 'Bb'][1 + i % 5], "
    "[0.5, 'NaN'::DOUBLE, NULL, -2, 'inf'::DOUBLE][1 + i % 5], (i * 1.25)::DECIMAL(10,2), "
    "TIMESTAMP '2020-01-01' + INTERVAL (i) DAY, make_timestamptz(i * 86400000000), "
    "CASE WHEN i % 4 > 0 THEN DATE '2020-02-20' + i::INTEGER END, TIME '10:00:00' + INTERVAL (i) MINUTE, i % 3 = 0, "
    "CASE WHEN i % 3 > 0 THEN encode('b' || i) END, format('{:08d}-0000-0000-0000-000000000000', i)::UUID, "
    "CASE WHEN i % 5 > 0 THEN range(i % 4)::INTEGER[] END, "
    "CASE WHEN i % 3 > 0 THEN {'x': i % 5, 'y': ['p', NULL][1 + i % 2]} END, "
    "CASE i % 3 WHEN 0 THEN [] WHEN 1 THEN [{'p': i, 'q': ['v', NULL]}] END, [i, i / 2]::FLOAT[2] FROM range(20) r(i)"
)
_SECOND: Final = "SELECT i % 9, i * 3, ['x', NULL, 'b'][1 + i % 3], i / 4, [i] FROM range(14) r(i)"
_INDEXES: Final = (
    ("id", "BTREE"),
    ("id", "ZONEMAP"),
    ("a", "BITMAP"),
    ("s", "BTREE"),
    ("s", "BITMAP"),
    ("dec", "ZONEMAP"),
    ("ts", "BTREE"),
)


@dataclass
class Twins:
    """Three tables: `t` and `u` in Lance and in DuckDB, and the native table `n` on both sides.

    Attributes:
        folder: Folder of the Lance tables.
        random: Random generator.
        keyed: The `id` of `t` is its primary key.
        counts: Executed statements, by kind.
        refused: Statements that both rejected, by kind.
        differences: Differences between the sides.
        log: Executed statements.
        past: Versions of `t` for time travel, each stored as a native table.
        ended: DuckDB has failed, so the tables can no longer be compared.
    """

    folder: Path
    random: Random
    keyed: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    past: list[int] = field(default_factory=list)
    ended: bool = False

    def __post_init__(self) -> None:
        self.native, self.lance = duckdb.connect(), ld.connect(self.folder)
        self.uri = self.folder / "t.lance"
        types = _TYPES.replace("NOT NULL", "PRIMARY KEY", 1) if self.keyed else _TYPES
        self.native.execute(f"CREATE TABLE t ({types}); INSERT INTO t {_FIRST}")
        self.native.execute(
            f"CREATE TABLE u (id INTEGER, a BIGINT, s VARCHAR, d FLOAT, l INTEGER[]); INSERT INTO u {_SECOND}"
        )
        for connection in (self.native, self.lance.native):
            connection.execute("CREATE TABLE n (id INTEGER, a INTEGER, s VARCHAR)")
            connection.execute("INSERT INTO n VALUES (1, 2, 'b'), (7, NULL, 'x'), (7, 1, NULL)")
            connection.execute("SET TimeZone = 'UTC'")
            if not KNOWS_NEAREST:  # DuckDB 1.5.0 pushes filters of a join through LIMIT into any Arrow table
                connection.execute("SET disabled_optimizers = 'join_filter_pushdown'")
        self._write()
        self.lance.execute(f"ATTACH '{self.folder}' AS ns (TYPE lance)")

    def _write(self) -> None:
        """Write the Lance tables: fragments of some size, deleted rows, with and without stable row ids and indexes."""
        rows = self.native.sql("FROM t ORDER BY id").to_arrow_table()
        ids = pa.array([UUID(str(value)).bytes for value in rows.column("u").to_pylist()], pa.binary(16))
        place = rows.schema.get_field_index("u")
        rows = rows.set_column(place, "u", pa.ExtensionArray.from_storage(pa.uuid(), ids))
        if self.random.random() < 0.3:
            rows = rows.set_column(2, "s", rows.column("s").cast(pa.large_string()))
        first = pa.field("id", pa.int32(), False, _KEY if self.keyed else None)
        rows = rows.cast(pa.schema([first, *list(rows.schema)[1:]]))
        options: dict[str, Any] = {
            "enable_stable_row_ids": self.random.random() < 0.5,
            "data_storage_version": self.random.choice(["2.1", "2.2"]),
            "max_rows_per_file": self.random.choice([5, 7, 100]),
        }
        self.log.append(str(options))
        dataset = ld.write_dataset(pa.concat_tables([rows, rows.slice(0, 3)]), self.uri, **options)
        again = dataset.to_table(columns=["id"], with_row_address=True).slice(20).column("_rowaddr").to_pylist()
        dataset.delete(f"_rowaddr IN ({', '.join(map(str, again))})")
        for column, kind in _INDEXES:
            if self.random.random() < 0.3:
                dataset.create_scalar_index(column, kind, replace=True)
                self.log.append(f"{kind} on {column}")
        ld.write_dataset(self.native.sql("FROM u").to_arrow_table(), self.folder / "u.lance")

    def close(self) -> None:
        self.lance.close()
        self.native.close()

    def tables(self) -> Tables:
        """Return the columns of the tables, as statements spell these."""
        described = self.native.execute("SELECT table_name, column_name, data_type FROM duckdb_columns()").fetchall()
        names = {"t": "{t}", "u": "u", "n": "n", **{f"past{version}": f"{{past:{version}}}" for version in self.past}}
        return {spelled: [row[1:] for row in described if row[0] == name] for name, spelled in names.items()}

    def spelled(self, sql: str, *, ours: bool) -> str:
        """Return a statement with table names filled in."""
        path = f"'{self.folder}/"
        sql = sql.replace("{file}", f"{self.folder}/{'ours' if ours else 'native'}")
        is_named = sql.startswith(("ALTER", "COMMENT", "COPY {t}")) or re.match(r"CREATE .* LIKE ", sql) is not None
        takes_no_alias = is_named or "INSERT" in sql.partition("INTO {t}")[0]

        def made(match: re.Match[str]) -> str:
            name = match[1]
            return self.random.choice([f"lance.{name}", f"ns.main.{name}", f"{path}{name}.lance'"]) if ours else name

        def table(match: re.Match[str]) -> str:
            alias = match[1] or ""
            if not ours:
                return f"t{alias}"
            name = self.random.choice(["t", "lance.t", '"T"', "lance.main.t", "ns.t", "ns.main.t", f"{path}t.lance'"])
            if alias or not name.startswith("'") or (takes_no_alias and "{t}" not in match.string[: match.start()]):
                return name + alias
            return f"{name} AS t"

        def older(match: re.Match[str]) -> str:
            version, alias = int(match[1]), match[2]
            if not ours:
                return f"past{version} AS {alias}"
            at = self.random.choice([f"{version}", f"'of{version}'", f"(SELECT {version - 1} + 1)"])
            name = self.random.choice(["t", "lance.t", "ns.main.t", f"{path}t.lance'"])
            called = f"lance_scan('{self.uri}', version := {version}) AS {alias}"
            spelled = [f"{name} AT (VERSION => {at}) AS {alias}", f"{name} AS {alias} AT (VERSION => {at})", called]
            return self.random.choice(spelled)

        if not ours:
            sql = re.sub(r"LIKE (\{t\}|\w+)", self._columns, sql)
        sql = re.sub(r"\{past:(\d+)\} AS (\w+)", older, sql)
        text = re.sub(r"\{t\}( AS)?", table, re.sub(r"\{new:(\w+)\}", made, sql))
        clauses = () if ours or KNOWS_NEAREST else nearest_clauses(text, tokens_of(text))
        return apply(text, [edit for clause in clauses for edit in clause.as_lateral()])

    def _columns(self, like: re.Match[str]) -> str:
        """Return the columns that LIKE selects, which DuckDB does not support."""
        rows = self.native.execute(f"DESCRIBE {like[1].strip('{}')}").fetchall()
        return f"({', '.join(f'{name} {type_}' for name, type_, *_ in rows)})"

    def remember(self) -> None:
        """Let statements use the current version, by its number and by a tag."""
        version = ld.dataset(self.uri).version
        if version not in self.past:
            self.past.append(version)
            ld.dataset(self.uri).tags.create(f"of{version}", version)
            self.native.execute(f"CREATE TABLE past{version} AS FROM t")
            self.log.append(f"version {version} is remembered")

    def run(self, sample: Sample, way: str = "execute") -> bool:
        """Run a statement on both, compare all that it gives, and return whether it was refused.

        Args:
            sample: The statement.
            way: How it is run: "execute", "sql", "prepare" or "executemany".
        """
        mine, theirs = self.spelled(sample.sql, ours=True), self.spelled(sample.sql, ours=False)
        self.log.append(f"{way}: {mine} {sample.parameters or ''}")
        ours = answer(self.lance, mine, sample.parameters, way)
        refused = isinstance(ours, str)
        if refused and sample.kind in ("alter type", "alter add") and any(words in ours for words in WITHOUT_EQUAL):
            return True
        # DuckDB prepares no MERGE.
        way = "execute" if way == "prepare" and sample.kind == "merge" else way
        native = answer(self.native, theirs, sample.parameters, way)
        if sample.kind == "merge" and isinstance(native, str) and FAULT in native:
            self.ended = True  # the Lance side may have changed its rows
            return True
        self.counts[sample.kind] += 1
        self.refused[sample.kind] += refused
        if way == "sql" and native == [] and not refused:
            ours = native  # DuckDB 1 returns None for a change
        if refused != isinstance(native, str) or (not refused and ours != native):
            self.differences.append(f"{sample.kind} by {way}: {mine}\n  {sample.parameters}\n  {ours}\n  {native}")
        return refused

    def check(self, after: str, tables: Sequence[str] = ("t",)) -> None:
        """Compare the rows of tables, unless something was different before."""
        for table in tables if not (self.differences or self.ended) else ():
            (ours, rows), (native, own) = rows_of(self.lance, f"lance.{table}"), rows_of(self.native, table)
            if (ours, rows) != (native, own):
                more, missing = sorted(set(rows) - set(own)), sorted(set(own) - set(rows))
                figures = (
                    f"{ours} {len(rows)}, not {native} {len(own)}" if ours != native else f"{len(rows)}, {len(own)}"
                )
                self.differences.append(
                    f"rows of {table} after {after}: {figures}\n  {more}\n  {missing}\n  {self.log[-1]}"
                )
                return

    def change_elsewhere(self) -> None:
        """Let another writer change the table: pylance or another dataset."""
        dataset: Any = self.random.choice([ld, lance]).dataset(str(self.uri))
        number, kind = self.random.randrange(40), self.random.choice(["insert", "delete", "compact", "index", "update"])
        self.counts[f"other {kind}"] += 1
        self.log.append(f"{dataset.__module__}: {kind} {number}")
        match kind:
            case "insert" if not self.keyed:
                rows = dataset.to_table(filter=f"id % 5 = {number % 5}").slice(0, 2)
                if rows.num_rows:
                    dataset.insert(rows)
                    self.native.register("__rows", rows)
                    self.native.execute("INSERT INTO t BY NAME SELECT * FROM __rows")
                    self.native.unregister("__rows")
            case "delete":
                dataset.delete(f"id = {number}")
                self.native.execute(f"DELETE FROM t WHERE id = {number}")
            case "update":
                dataset.update({"s": "'other'"}, where=f"id = {number}")
                self.native.execute(f"UPDATE t SET s = 'other' WHERE id = {number}")
            case "compact":
                dataset.optimize.compact_files()
            case "index":
                dataset.create_scalar_index("id", "BTREE", replace=True)


def answer(connection: Any, sql: str, parameters: Sequence[Any], way: str) -> Any:
    """Return titles, types and sorted rows of a statement, or its error as a string."""
    values = list(parameters)
    given = (values,) if values else ()
    try:
        if way == "prepare":
            connection.execute(f"PREPARE p AS {sql}")
            try:
                return described(connection.execute(f"EXECUTE p({', '.join(map(_literal, values))})".replace("()", "")))
            finally:
                with suppress(duckdb.Error):  # a transaction that failed
                    connection.execute("DEALLOCATE p")
        if way == "executemany":
            connection.executemany(sql, [values, values])
            return []
        if way in ("sql", "view"):
            relation = connection.sql(sql, params=values) if values else connection.sql(sql)
            if relation is None:
                return []
            return [list(relation.columns), list(map(str, relation.types)), sorted(map(repr, relation.fetchall()))]
        return described(connection.execute(sql, *given))
    except REFUSED as error:
        return f"{type(error).__name__}: {str(error)[:400]}"


def described(cursor: Any) -> list[Any]:
    """Return titles, types and rows of a result."""
    titles = [column[0] for column in cursor.description]
    if not KNOWS_NEAREST:  # DuckDB 1 calls a NULL in RETURNING by the cast that it adds
        titles = [re.sub(r"^CAST\((\w+) AS INTEGER\)$", r"\1", title) for title in titles]
    types = [str(column[1]) for column in cursor.description]
    return [titles, types, sorted(map(repr, cursor.fetchall()))]


def rows_of(connection: Any, name: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Return names and types of the columns of a table, and its rows as texts."""
    columns = [row[:2] for row in connection.execute(f"DESCRIBE {name}").fetchall()]
    return columns, sorted(map(repr, connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {name}").fetchall()))


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else repr(value)
