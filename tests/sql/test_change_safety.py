"""Read-only connections never change tables, failing stores leave no partial changes, and secrets stay secret."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from support.faults import Faults, Plan, fail_at, fail_from

import lance_duck as ld
from lance_duck.errors import LanceDuckError, UnsupportedError

CHANGES = [
    "INSERT INTO {t} SELECT touch(9), 'n'",
    "INSERT INTO {t} VALUES (touch(9), 'n')",
    "INSERT INTO {t} SELECT touch(9), 'n' ON CONFLICT (id) DO NOTHING",
    "INSERT OR REPLACE INTO {t} VALUES (touch(9), 'n')",
    "WITH w AS (SELECT touch(9)) INSERT INTO {t} (id) FROM w",
    "UPDATE {t} SET id = touch(id)",
    "DELETE FROM {t} WHERE touch(id) > 0",
    "TRUNCATE {t}",
    "MERGE INTO {t} USING (SELECT touch(1) AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "ALTER TABLE {t} ADD COLUMN more INTEGER",
    "ALTER TABLE {t} DROP COLUMN s",
    "ALTER TABLE {t} SET AUTO_CLEANUP (interval = 2)",
    "COMMENT ON TABLE {t} IS 'x'",
    "COMMENT ON COLUMN {t}.id IS 'x'",
    "DROP TABLE {t}",
    "CREATE OR REPLACE TABLE {t} AS SELECT touch(1) AS a",
    "CREATE TABLE {d}.fresh AS SELECT touch(1) AS a",
    "COPY {t} FROM '{folder}/rows.csv'",
    "CREATE INDEX i ON {t} (id)",
    "DROP INDEX known ON {t}",
    "ALTER INDEX known ON {t} OPTIMIZE",
    "REINDEX {t}",
    "OPTIMIZE {t}",
    "VACUUM {t}",
    "CHECKPOINT {t}",
    "CALL lance_compact('{t}')",
    "CALL lance_cleanup('{t}')",
    "CALL lance_set_config('{t}', 'k', 'v')",
    "CALL lance_restore('{t}', 1)",
    "CALL lance_create_tag('{t}', 'tag')",
    "CALL lance_create_branch('{t}', 'branch')",
    "CREATE VIEW {d}.seen AS SELECT 1",
]
ROADS: dict[str, Callable[[Any, str], object]] = {
    "sql": lambda con, sql: con.sql(sql),
    "execute": lambda con, sql: con.execute(sql),
    "cursor": lambda con, sql: con.cursor().execute(sql),
    "executemany": lambda con, sql: con.executemany(sql, [[]]),
    "parsed": lambda con, sql: [con.execute(each) for each in con.extract_statements(sql)],
    "several": lambda con, sql: con.execute(f"SELECT 1; {sql}; SELECT 2"),
    "prepared": lambda con, sql: con.execute(f"PREPARE p AS {sql}; EXECUTE p"),
    "transaction": lambda con, sql: con.execute(f"BEGIN; {sql}; COMMIT"),
}


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A folder with the table `t` of three versions, an index and a file of rows."""
    dataset = ld.write_dataset(pa.table({"id": [1, 2], "s": ["a", "b"]}), tmp_path / "t.lance")
    dataset.insert(pa.table({"id": [3], "s": ["c"]}))
    dataset.create_scalar_index("id", "BTREE", "known")
    (tmp_path / "rows.csv").write_text("id,s\n7,x\n")
    return tmp_path


def state(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def touching(con: ld.Connection) -> list[int]:
    """Give a connection the function `touch`; returns the list of its calls."""
    calls: list[int] = []

    def touch(x: int) -> int:
        calls.append(x)
        return x

    con.create_function("touch", touch, ["BIGINT"], "BIGINT", side_effects=True)
    return calls


@pytest.mark.parametrize("is_attached", [False, True])
@pytest.mark.parametrize("road", ROADS)
def test_no_statement_changes_a_read_only_table(places: Path, road: str, is_attached: bool) -> None:
    with ld.connect(None if is_attached else places, read_only=not is_attached) as con:
        database = "aside" if is_attached else "lance"
        if is_attached:
            con.execute(f"ATTACH '{places}' AS aside (TYPE lance, READ_ONLY)")
        calls, before, let_through = touching(con), state(places), []
        for sql in CHANGES:
            try:
                ROADS[road](con, sql.format(t=f"{database}.t", d=database, folder=places))
                let_through.append(sql)
            except (
                UnsupportedError,
                duckdb.ParserException,
            ):  # raised by `extract_statements` for Lance statements
                pass
            if con.in_transaction:
                con.rollback()
        assert let_through == []
        assert calls == []
        assert state(places) == before
        assert con.execute(f"SELECT count(*) FROM {database}.t").fetchall() == [(3,)]


@pytest.mark.parametrize("is_attached", [False, True])
def test_no_method_changes_a_read_only_table(places: Path, is_attached: bool) -> None:
    with ld.connect(None if is_attached else places, read_only=not is_attached) as con:
        if is_attached:
            con.execute(f"ATTACH '{places}' AS lance_ro (TYPE lance, READ_ONLY)")
        name = "lance_ro.t" if is_attached else "t"
        before, frame = state(places), pa.table({"id": [9], "s": ["n"]})
        roads: list[Callable[[], object]] = [
            lambda: con.append(name, frame),
            lambda: con.appender(name),
            lambda: con.query_appender(f"INSERT INTO {name} FROM appended_data", ["BIGINT", "VARCHAR"]),
            lambda: con.sql("SELECT 9, 'n'").insert_into(name),
            lambda: con.table(name).insert([9, "n"]),
            lambda: con.sql("SELECT 9 AS a").create(f"{name.rpartition('.')[0] or 'lance'}.t"),
        ]
        for road in roads:
            with pytest.raises((LanceDuckError, duckdb.Error, AttributeError)):
                road()
        assert state(places) == before


STORED = [
    "INSERT INTO t VALUES (9, 'n')",
    "INSERT INTO t SELECT id + 10, s FROM t RETURNING id",
    "UPDATE t SET s = s || '!'",
    "DELETE FROM t WHERE id = 1",
    "MERGE INTO t USING (SELECT 1 AS id) AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = 'm'",
    "BEGIN; INSERT INTO t VALUES (9, 'n'); DELETE FROM t WHERE id = 2; COMMIT",
    "ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7",
    "CREATE TABLE lance.fresh AS FROM t",
    "COPY t TO '{folder}/fresh.lance'",
]


def failures_at(step: int) -> list[Plan]:
    """Return plans for a disk that is full from a step on, and for one with a single failure."""
    return [fail_from(step, errno.ENOSPC), fail_at(step, errno.EIO)]


def content(folder: Path) -> dict[str, Any]:
    """Return the rows of each table of a folder, as a new connection reads them."""
    with ld.connect(folder) as con:
        names = [row[0] for row in con.execute("SHOW TABLES FROM lance").fetchall()]
        return {name: con.execute(f"FROM lance.{name} ORDER BY ALL").fetchall() for name in names}


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sql", STORED)
def test_a_failing_store_leaves_the_old_rows_or_the_new_rows(tmp_path: Path, sql: str, stride: int) -> None:
    def fresh(name: str) -> Path:
        folder = tmp_path / name
        ld.write_dataset(pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]}), folder / "t.lance")
        return folder

    counted = fresh("counted")
    before = content(counted)
    with ld.connect(counted) as con, Faults() as seen:
        con.execute(sql.format(folder=counted))
    after, failures = content(counted), 0
    plans = [plan for step in range(0, len(seen.steps), stride) for plan in failures_at(step)]
    for number, plan in enumerate(plans):
        folder = fresh(str(number))
        with ld.connect(folder) as con:
            failed = None
            with Faults(plan):
                try:
                    con.execute(sql.format(folder=folder))
                except LanceDuckError as error:
                    failed = error
            if con.in_transaction:
                con.rollback()
            now = content(folder)
            assert now == after if failed is None else now in (before, after)
            failures += failed is not None
            assert con.execute("SELECT count(*) FROM t").fetchall() == [(len(now["t"]),)]
            con.execute("INSERT INTO t (id) VALUES (99)")
    assert failures


SECRET = "hush-7f3a-hush"


@pytest.mark.parametrize(
    "sql",
    [
        "FROM 's3://bucket/x.lance'",
        "INSERT INTO 's3://bucket/x.lance' VALUES (1)",
        "CREATE TABLE 's3://bucket/x.lance' AS SELECT 1 AS a",
        "COPY (SELECT 1 AS a) TO 's3://bucket/x.lance'",
        "ATTACH 's3://bucket/folder' AS x (TYPE lance)",
        "CALL lance_compact('s3://bucket/x.lance')",
        "DROP TABLE 's3://bucket/x.lance'",
        f"INSERT INTO t SELECT '{SECRET}'::INTEGER, 's'",
    ],
)
def test_errors_do_not_contain_store_secrets(places: Path, sql: str) -> None:
    with ld.connect(places) as con:
        con.execute(
            f"CREATE SECRET s (TYPE lance, KEY_ID 'me', SECRET '{SECRET}', ENDPOINT 'http://127.0.0.1:9', REGION 'x', "
            "allow_http 'true', retry_timeout '1', max_retries '0')"
        )
        with pytest.raises((LanceDuckError, duckdb.Error)) as failed:
            con.execute(sql)
        shown = "".join(traceback.format_exception(failed.value))
        lines = [line for line in shown.splitlines() if "con.execute" not in line]
        assert SECRET not in str(failed.value)
        assert SECRET not in "\n".join(lines)
