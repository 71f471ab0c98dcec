"""Random statements that fail: in their text, values, sources, schemas and files, or because the disk does."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
from support.faults import Faults, fail_at, fail_from

import lance_duck as ld
from lance_duck.errors import LanceDuckError

ROWS, LATE = 30_000, 25_000
"""Rows of the table `many`, and the row at which a source fails: after some batches were written."""
REFUSED_QUERIES = (
    "SELECT nope FROM t",
    "SELECT * FROM nope",
    "SELECT 1 AS",
    "SELECT error('boo') AS id, 'a' AS s",
    "SELECT 'abc'::INTEGER AS id, 'a' AS s",
    "SELECT 2147483647::INTEGER + 1::INTEGER AS id, 'a' AS s",
    "SELECT count(*) OVER () + sum(nope) AS id FROM t",
    f"SELECT CASE WHEN id = {LATE} THEN error('late') ELSE id END AS id, s FROM many",
    f"SELECT CASE WHEN id = {LATE} THEN 'abc' ELSE '7' END::INTEGER AS id, s FROM many",
    "SELECT id, s FROM broken",
    "SELECT id, s FROM stopped",
    "SELECT id, s FROM '{folder}/nothing.lance'",
    "SELECT id, s FROM t AT (VERSION => 99)",
    "SELECT id, s FROM lance_vector_search('t', 'v', [1.0, 2.0], k := 3)",
    "SELECT id, s FROM lance_fts('t', 's', 'duck', k := -3)",
    "SELECT id, s FROM lance_table_changes('t', 5, 99)",
    "SELECT id, s FROM t WHERE match(id, 'duck')",
    "SELECT id, s FROM read_csv('{folder}/nothing.csv')",
)
"""Queries that are rejected immediately or after many rows. `{folder}` is the connected folder."""
REFUSED_ROWS = (
    "SELECT 1 AS _rowid",
    "SELECT 1 AS _rowaddr, 2 AS x",
    "SELECT [['a']]::VARCHAR[1][1] AS x",
    "SELECT ['a', 'b']::VARCHAR[2] AS x FROM many",
    "SELECT INTERVAL 1 DAY AS x",
    "SELECT {'a': INTERVAL 1 DAY} AS x",
    "SELECT '1'::BIT AS x",
    "SELECT '24:00:00'::TIME AS x",
    "SELECT 170141183460469231731687303715884105727::HUGEINT AS x",
    f"SELECT CASE WHEN id = {LATE} THEN 170141183460469231731687303715884105727::HUGEINT ELSE 1 END AS x FROM many",
    "SELECT 1::UNION(a INTEGER, b VARCHAR) AS x",
)
"""Queries whose rows no table can hold."""
REFUSED_OPTIONS = (
    "max_rows_per_file = 0",
    "max_rows_per_file = -5",
    "max_rows_per_file = 'many'",
    "max_bytes_per_file = 0",
    "data_storage_version = '9.9'",
    "nonsense = 1",
    "data_storage_version = '2.1', max_rows_per_file = 0",
)
STATEMENTS = (
    "SELEC 1",
    "SELECT * FROM t WHERE nope = 1",
    "SELECT * FROM t ORDER BY array_distance(v, [1.0]::FLOAT[1]) LIMIT 3",
    "INSERT INTO t VALUES ('abc', 'd', NULL)",
    "INSERT INTO t VALUES (1)",
    "INSERT INTO t (id) VALUES (1, 2)",
    "INSERT INTO t VALUES (7, 'd', NULL) RETURNING error('boo')",
    "INSERT INTO t VALUES (7, 'd', NULL) RETURNING nope",
    "INSERT INTO t BY NAME SELECT 1 AS nope",
    "INSERT INTO t SELECT id, s, v FROM t ON CONFLICT (nope) DO NOTHING",
    "INSERT INTO t VALUES (1, 'd', NULL), (1, 'e', NULL) ON CONFLICT (id) DO UPDATE SET s = 'x'",
    "UPDATE t SET nope = 1",
    "UPDATE t SET id = 'q'",
    "UPDATE t SET id = CASE WHEN id = 15 THEN error('boo') ELSE id END",
    "UPDATE t SET s = s RETURNING CASE WHEN id = 15 THEN error('boo') END",
    "UPDATE t SET id = m.id FROM many m WHERE nope",
    "DELETE FROM t WHERE s::INTEGER = 1",
    "DELETE FROM t WHERE id < 3 RETURNING error('boo')",
    "MERGE INTO t USING many m ON t.id = m.id WHEN MATCHED THEN UPDATE SET id = 'abc'",
    "MERGE INTO t USING many m ON t.id = m.id WHEN MATCHED THEN UPDATE SET s = m.s RETURNING error('boo')",
    "MERGE INTO t USING many m ON t.id = m.id % 3 WHEN MATCHED THEN UPDATE SET s = m.s",
    "MERGE INTO t USING many m ON t.id = m.id WHEN MATCHED THEN DO SOMETHING",
    "ALTER TABLE t DROP COLUMN nope",
    "ALTER TABLE t ADD COLUMN id INTEGER",
    "ALTER TABLE t ADD COLUMN x VARCHAR DEFAULT error('boo')",
    "ALTER TABLE t ALTER COLUMN s TYPE INTEGER",
    "ALTER TABLE t ALTER COLUMN s SET NOT NULL",
    "ALTER TABLE t RENAME nope TO other",
    "ALTER TABLE nope ADD COLUMN x INTEGER",
    "DROP TABLE nope",
    "DROP TABLE lance.nope",
    "CREATE INDEX i ON t (nope)",
    "CREATE INDEX i ON t (s) USING NONSENSE",
    "CREATE INDEX i ON t (id) USING IVF_PQ WITH (num_partitions = 0)",
    "DROP INDEX nope ON t",
    "REINDEX nope",
    "CREATE TABLE lance.t AS SELECT 1 AS id",
    "CREATE TABLE lance.w (id INTEGER, id INTEGER)",
    "CREATE TABLE lance.w (id NONSENSE)",
    "CREATE TABLE lance.w (id INTEGER CHECK (id > 0))",
    "CREATE TABLE lance.w (m MAP(INTEGER, VARCHAR)) WITH (data_storage_version = '2.1')",
    "CREATE TABLE lance.w AS SELECT MAP {1: 'a'} AS m WITH (data_storage_version = '2.1')",
    "CREATE TABLE lance.w (LIKE nope)",
    "COPY t TO '{folder}/in.lance' (FORMAT parquet)",
    "COPY t TO '{folder}/in.lance' (MODE 'nonsense')",
    "COPY t FROM '{folder}/broken.csv' (HEADER)",
    "COPY t FROM '{folder}/nothing.csv'",
    "COPY nope TO '{folder}/in.lance'",
    "CALL lance_compact_files('nope')",
    "CALL lance_restore('t', 99)",
    "CALL lance_create_tag('t', 'a b', 1)",
    "CALL lance_nonsense('t')",
    "PRAGMA nonsense",
    "SET lance_recall = 7",
    "SET lance_nonsense = 1",
    "ATTACH '{folder}/nothing/x' AS o (TYPE lance)",
    "DETACH nope",
    "CREATE SECRET (TYPE lance, NONSENSE 'x')",
    "EXECUTE nope",
    "PREPARE p AS SELECT nope FROM t",
    "VACUUM nope",
    "ANALYZE nope",
    "DESCRIBE nope",
    "COMMENT ON COLUMN t.nope IS 'x'",
    "EXPLAIN UPDATE t SET nope = 1",
    "EXPLAIN ANALYZE SELECT error('boo') FROM t",
    "USE nope",
    "SELECT id FROM t; SELECT nope FROM t; SELECT 1",
)
TAKE_ROWS = (
    "CREATE TABLE lance.w AS {query}",
    "CREATE OR REPLACE TABLE lance.t AS {query}",
    "CREATE TABLE '{folder}/in.lance' AS {query}",
    "COPY ({query}) TO '{folder}/in.lance'",
    "COPY ({query}) TO '{folder}/t.lance' (MODE 'append')",
)
"""Statements that write all columns of a query."""
TAKE_COLUMNS = (
    "INSERT INTO t (id, s) {query}",
    "INSERT INTO t (id, s) {query} RETURNING id",
    "INSERT INTO t (id, s) {query} ON CONFLICT (id) DO NOTHING",
    "UPDATE t SET s = m.s FROM ({query}) m WHERE t.id = m.id",
    "DELETE FROM t USING ({query}) m WHERE t.id = m.id",
    "DELETE FROM t WHERE id IN (SELECT id FROM ({query}))",
    "MERGE INTO t USING ({query}) m ON t.id = m.id WHEN MATCHED THEN UPDATE SET s = m.s "
    "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (m.id, m.s)",
    "MERGE INTO t USING ({query}) m ON t.id = m.id WHEN MATCHED THEN DELETE RETURNING merge_action",
    "SELECT count(*), min(s) FROM ({query}) m",
)
"""Statements that read `id` and `s` of a query."""
WRITES = (
    "INSERT INTO t SELECT id, s, NULL FROM many",
    "UPDATE t SET s = 'new'",
    "DELETE FROM t WHERE id > 3",
    "MERGE INTO t USING many m ON t.id = m.id WHEN MATCHED THEN UPDATE SET s = m.s",
    "CREATE TABLE lance.w AS FROM many",
    "CREATE OR REPLACE TABLE lance.t AS SELECT id, s, NULL::FLOAT[4] AS v FROM many",
    "COPY many TO '{folder}/in.lance'",
    "ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 7",
    "CREATE INDEX i ON t (id) USING BTREE",
    "INSERT INTO t VALUES (1, 'a', NULL) RETURNING id",
)
"""Statements that succeed on a disk that does."""
OWN = (LanceDuckError, duckdb.Error, KeyboardInterrupt)


class FailingStatements:
    """Runs failing statements on one connection, and checks after each that the connection is usable.

    Args:
        folder: An empty folder.
        seed: Seed of all random choices.

    Attributes:
        counts: Failed statements by kind.
        log: Each statement with its error.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self.log: list[str] = []
        vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 160, pa.float32()), 4)
        self._rows = pa.table({"id": pa.array(range(40), pa.int32()), "s": ["duck"] * 40, "v": vectors})
        ld.write_dataset(self._rows, folder / "t.lance", max_rows_per_file=15)
        many = {"id": pa.array(range(ROWS), pa.int32()), "s": ["goose"] * ROWS}
        ld.write_dataset(pa.table(many), folder / "many.lance")
        (folder / "broken.csv").write_text("id,s,v\n1,a,\nabc,b,\n")
        self._connection = ld.connect(folder)

    def fail(self) -> None:
        """Run one statement and check its leftovers."""
        kind, sql = self._statement()
        in_transaction = self.random.random() < 0.25 and not sql.startswith("PREPARE")
        if in_transaction:
            self._connection.execute("BEGIN")
        elif self.random.random() < 0.2:
            self._connection.execute("FROM range(100_000)").fetchmany(3)
        error = self._run(kind, sql)
        self.log.append(f"{kind}, {'in a transaction: ' if in_transaction else ''}{sql}\n  -> {error!r}")
        if error is not None:
            self.counts[kind] += 1
            assert isinstance(error, OWN), self.log[-1]
        if in_transaction:
            with suppress(duckdb.TransactionException):  # DuckDB's own state after an error
                self._check_one()
            self._connection.execute("ROLLBACK")
        self._check(kind, is_changed=error is None)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _check(self, kind: str, *, is_changed: bool) -> None:
        self._check_one()
        assert not self._connection.in_transaction, self.log[-1]
        if is_changed:
            ld.write_dataset(self._rows, self.folder / "t.lance", mode="overwrite")
        count = self._connection.execute("SELECT count(*), sum(id), count(DISTINCT s) FROM t").fetchall()
        assert count == [(40, 780, 1)], self.log[-1]
        names = {path.name for path in self.folder.iterdir()} - {"t.lance", "many.lance", "broken.csv"}
        for name in names:
            shutil.rmtree(self.folder / name)
        # A failing disk may not be able to remove the files written to it.
        assert not names or is_changed or kind == "disk", self.log[-1]

    def _check_one(self) -> None:
        try:
            assert self._connection.execute("SELECT 1").fetchall() == [(1,)]
            assert self._connection.sql("SELECT 2").fetchall() == [(2,)]
        except duckdb.TransactionException:
            raise
        except duckdb.Error as error:
            raise AssertionError(f"{error} after {self.log[-1]}") from error

    def _statement(self) -> tuple[str, str]:
        choose = self.random.choice
        kind = choose(("text", "query", "query", "rows", "options", "disk", "disk", "python"))
        if kind == "query":
            sql = choose(TAKE_ROWS + TAKE_COLUMNS).replace("{query}", choose(REFUSED_QUERIES))
        elif kind == "rows":
            sql = choose(TAKE_ROWS).replace("{query}", choose(REFUSED_ROWS))
        elif kind == "options":
            sql = choose(
                (
                    "CREATE TABLE lance.w WITH ({options}) AS FROM many",
                    "CREATE TABLE lance.w (id INTEGER) WITH ({options})",
                    "COPY many TO '{folder}/in.lance' ({options})",
                )
            ).replace("{options}", choose(REFUSED_OPTIONS))
            if sql.startswith("COPY"):
                sql = sql.replace(" = ", " ")
        elif kind == "disk":
            sql = choose(WRITES)
        elif kind == "python":
            sql = choose(REFUSED_QUERIES + REFUSED_ROWS)
        else:
            sql = choose(STATEMENTS)
        return kind, sql.replace("{folder}", str(self.folder))

    def _run(self, kind: str, sql: str) -> BaseException | None:
        broken, stopped = _source(ValueError("the source broke")), _source(KeyboardInterrupt())  # read by statements
        assert broken is not stopped
        disk: AbstractContextManager[Any] = nullcontext()
        if kind == "disk":
            plan = self.random.choice((fail_at, fail_from))
            disk = Faults(plan(self.random.randrange(12), self.random.choice((errno.ENOSPC, errno.EIO))))
        try:
            with disk:
                if kind == "python":
                    self._by_python()(self._connection.sql(sql))
                    return None
                way = self.random.choice(("execute", "execute", "sql"))
                result = getattr(self._connection, way)(sql)
                if result is not None:
                    result.fetchall()
        except BaseException as error:
            return error.with_traceback(None) if self.random.random() < 0.5 else error
        return None

    def _by_python(self) -> Callable[[Any], object]:
        place = self.folder / "t.lance"
        options: tuple[Callable[[Any], object], ...] = (
            lambda relation: ld.write_dataset(relation, self.folder / "in.lance"),
            lambda relation: ld.write_dataset([relation], self.folder / "in.lance"),
            lambda relation: ld.write_dataset(lambda: relation, self.folder / "in.lance"),
            lambda relation: ld.write_dataset(relation, place, mode="append"),
            lambda relation: ld.dataset(place).insert(relation),
            lambda relation: ld.dataset(place).merge_insert("id").when_matched_update_all().execute(relation),
            lambda relation: ld.dataset(place).add_columns(relation),
            lambda relation: ld.dataset(place).merge(relation, "id"),
        )
        return self.random.choice(options)


def _source(error: BaseException) -> pa.RecordBatchReader:
    """Return rows that end in an error."""
    schema = pa.schema([("id", pa.int32()), ("s", pa.string())])

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            yield pa.record_batch([pa.array([1] * 10_000, pa.int32()), pa.array(["x"] * 10_000)], schema=schema)
        raise error

    return pa.RecordBatchReader.from_batches(schema, batches())


def failed(folder: Path, seed: int, statements: int) -> Counter[str]:
    """Run random statements that fail; return how many did, by what failed."""
    life = FailingStatements(folder, seed)
    try:
        for _ in range(statements):
            life.fail()
    finally:
        life.close()
    return life.counts
