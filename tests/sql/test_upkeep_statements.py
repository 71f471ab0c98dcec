"""OPTIMIZE, VACUUM, CHECKPOINT and automatic cleanup of Lance tables, and the procedures for the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance
import pytest

import lance_duck as ld
from lance_duck.errors import (
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    UnsupportedError,
    WrongTypeError,
)

Connect = Callable[..., ld.Connection]


@pytest.fixture
def small(folder: Path) -> Path:
    """`small.lance`: four fragments of one row each, as four versions."""
    for i in range(4):
        ld.write_dataset({"id": [i]}, folder / "small.lance", mode="append")
    return folder / "small.lance"


def figures(con: ld.Connection, sql: str) -> dict[str, dict[str, Any]]:
    rows = con.execute(sql).fetchall()
    assert [column[0] for column in con.description] == ["Operation", "Target", "MetricsJSON"]
    return {operation: json.loads(metrics) for operation, _, metrics in rows}


def fragments(path: Path) -> int:
    return len(lance.dataset(path).get_fragments())


@pytest.mark.parametrize(
    "sql",
    [
        "OPTIMIZE small",
        "OPTIMIZE TABLE lance.small",
        "OPTIMIZE '{path}' WITH (target_rows_per_fragment = 1048576, max_bytes_per_file = 0, num_threads = 0)",
        "CALL lance_compact('small')",
        "CALL lance_compact(lance.small, target_rows_per_fragment => 100)",
        "CALL lance.compact('{path}', materialize_deletions_threshold = 0.5)",
    ],
)
def test_small_fragments_are_joined(con: ld.Connection, small: Path, sql: str) -> None:
    found = figures(con, sql.format(path=small))
    assert found == {
        "compact": {"version": 6, "fragments_removed": 4, "fragments_added": 1, "files_removed": 4, "files_added": 1}
    }
    assert fragments(small) == 1
    assert con.execute("SELECT id FROM small ORDER BY id").fetchall() == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize("sql", ["OPTIMIZE small WITH (dry_run = true)", "CALL lance_compact(small, dry_run => true)"])
def test_a_dry_run_of_compaction_says_what_would_be_joined(con: ld.Connection, small: Path, sql: str) -> None:
    assert figures(con, sql) == {"compact": {"dry_run": True, "tasks": 1, "fragments_removed": 4}}
    assert fragments(small) == 4


@pytest.mark.parametrize(
    ("sql", "versions"),
    [
        ("VACUUM small", [1, 2, 3, 4]),
        ("VACUUM small WITH (older_than = INTERVAL '0 seconds')", [4]),
        ("VACUUM LANCE '{path}' WITH (older_than_seconds = 0, retain_n_versions = 3)", [2, 3, 4]),
        ("VACUUM LANCE small WITH (older_than = '0s', retain_versions = 2, delete_unverified)", [3, 4]),
        ("VACUUM lance.small WITH (older_than = '7 days')", [1, 2, 3, 4]),
        ("VACUUM lance.main.small WITH (versions = [2])", [1, 3, 4]),
        ("CALL lance_cleanup('small', older_than => INTERVAL 0 DAYS, retain => 3)", [2, 3, 4]),
        ("CALL lance_cleanup(small, older_than => '7 days')", [1, 2, 3, 4]),
        ("CALL lance_cleanup(small, older_than_seconds => 0, retain_versions => 2)", [3, 4]),
        ("CALL lance_cleanup(small, versions => [2])", [1, 3, 4]),
    ],
)
def test_old_versions_are_removed(con: ld.Connection, small: Path, sql: str, versions: list[int]) -> None:
    found = figures(con, sql.format(path=small))["cleanup"]
    assert found["old_versions"] == 4 - len(versions)
    assert [version["version"] for version in lance.dataset(small).versions()] == versions


@pytest.mark.parametrize(
    "sql",
    [
        "VACUUM small WITH (older_than_seconds = 0, dry_run = true)",
        "CALL lance_cleanup(small, older_than => INTERVAL 0 DAYS, dry_run => true)",
    ],
)
def test_a_dry_run_of_cleanup_removes_nothing(con: ld.Connection, small: Path, sql: str) -> None:
    found = figures(con, sql)["cleanup"]
    assert (found["dry_run"], found["old_versions"]) == (True, 3)
    assert len(lance.dataset(small).versions()) == 4


def test_tagged_versions_are_not_removed_silently(con: ld.Connection) -> None:
    with pytest.raises(ReferencedError, match="second"):
        con.execute("VACUUM trips WITH (older_than_seconds = 0)")
    found = figures(con, "VACUUM trips WITH (older_than_seconds = 0, error_if_tagged_old_versions = false)")
    assert found["cleanup"]["old_versions"] == 1


def test_checkpoint_is_all_upkeep(con: ld.Connection, small: Path) -> None:
    con.execute("CREATE INDEX i ON small (id) WITH (train = false)")
    found = figures(con, "CHECKPOINT small")
    assert list(found) == ["compact", "optimize_index", "cleanup"]
    assert found["compact"]["fragments_removed"] == 4
    assert found["optimize_index"]["indexes"] == {"i": {"rows_indexed": 4, "segments": 1}}
    assert found["cleanup"]["old_versions"] == 0
    assert con.execute("SELECT count(*) FROM small WHERE id = 3").fetchall() == [(1,)]


def test_checkpoint_and_vacuum_without_a_table_are_those_of_duckdb(con: ld.Connection, small: Path) -> None:
    con.execute("CHECKPOINT; VACUUM; CHECKPOINT memory")
    con.execute("CREATE TEMP TABLE own (a INTEGER); VACUUM own")
    assert ld.dataset(small).version == 4


def test_a_table_may_be_called_as_a_word_of_the_statement(con: ld.Connection, folder: Path) -> None:
    for name in ("analyze", "lance", "table"):
        ld.write_dataset({"id": [1]}, folder / f"{name}.lance")
        assert list(figures(con, f'VACUUM "{name}"')) == ["cleanup"]
        assert list(figures(con, f'OPTIMIZE "{name}"')) == ["compact"]
    assert list(figures(con, "VACUUM analyze")) == ["cleanup"]
    assert list(figures(con, "VACUUM lance WITH (dry_run)")) == ["cleanup"]


def test_indexes_follow_by_a_procedure(con: ld.Connection, small: Path) -> None:
    con.execute("CREATE INDEX i ON small (id); CREATE INDEX j ON small (id); INSERT INTO small VALUES (4)")
    found = figures(con, "CALL lance_optimize_indexes(small, index => 'j')")["optimize_index"]
    assert found["indexes"] == {"j": {"rows_indexed": 5, "segments": 1}}
    found = figures(con, "CALL lance_optimize_indexes('small', retrain = true, memory_limit = '8MB')")["optimize_index"]
    assert found["indexes"] == {name: {"rows_indexed": 5, "segments": 1} for name in "ij"}


def test_a_memory_limit_of_indexes_is_a_number_of_bytes(con: ld.Connection, small: Path) -> None:
    con.execute("CREATE INDEX i ON small (id); INSERT INTO small VALUES (4)")
    for sql in (
        "ALTER INDEX i ON small OPTIMIZE WITH (memory_limit = 'much')",
        "CALL lance_optimize_indexes(small, memory_limit => 'much')",
        "CALL lance_compact(small, memory_limit => 'much')",
        f"CALL lance_compact(small, memory_limit => '{'9' * 5000}')",
        f"CALL lance_optimize_indexes(small, memory_limit => '{'9' * 400}GB')",
    ):
        with pytest.raises(ld.InvalidInputError, match="memory_limit: not a number of bytes"):
            con.execute(sql)
    con.execute("ALTER INDEX i ON small OPTIMIZE WITH (memory_limit = '8 MB')")
    con.execute("CALL lance_optimize_indexes(small, memory_limit => 8000000)")
    con.execute("CALL lance_compact(small, memory_limit => 8000000)")
    con.execute("CALL lance_compact(small, memory_limit => '8 MB')")
    assert ld.dataset(small).index_statistics("i")["num_unindexed_rows"] == 0


def test_automatic_cleanup_is_set_shown_and_unset(con: ld.Connection, small: Path) -> None:
    def shown(table: str = "small") -> dict[str, str]:
        return dict(con.execute(f"SHOW MAINTENANCE ON {table}").fetchall())

    assert shown() == {"enabled": "false"}
    con.execute("ALTER TABLE small SET AUTO_CLEANUP WITH (interval = 2, older_than = '1h', retain_versions = 3)")
    assert [column[0] for column in con.execute("SHOW MAINTENANCE FROM lance.small").description] == ["Key", "Value"]
    assert shown() == {"enabled": "true", "interval": "2", "older_than": "1h", "retain_versions": "3"}
    assert lance.dataset(small).config()["lance.auto_cleanup.interval"] == "2"
    con.execute(f"ALTER TABLE '{small}' SET AUTO_CLEANUP (older_than => INTERVAL '1 day 500 ms')")
    assert shown(f"'{small}'") == {
        "enabled": "true",
        "interval": "20",
        "older_than": "86400s 500000us",
        "retain_versions": "3",
    }
    con.execute("ALTER TABLE lance.small UNSET AUTO_CLEANUP")
    assert shown() == {"enabled": "false"}


def test_a_table_cleans_up_after_itself_once_it_is_told_to(con: ld.Connection, small: Path) -> None:
    con.execute("ALTER TABLE small SET AUTO_CLEANUP WITH (interval = 1, older_than = '0s')")
    con.execute("INSERT INTO small VALUES (9)")
    assert len(lance.dataset(small).versions()) <= 2


def test_settings_and_metadata_are_set_and_unset(con: ld.Connection, small: Path) -> None:
    assert con.execute("CALL lance_set_config('small', 'a', 'b')").fetchall() == [(1,)]
    con.execute("CALL lance_set_table_metadata(small, 'owner', 'ann')")
    con.execute("CALL lance_set_schema_metadata(lance.small, 'k', ?)", ["v"])
    con.execute(f"CALL lance_set_column_metadata('{small}', 'id', 'unit', value => 'm')")
    table = ld.dataset(small)
    assert table.config()["a"] == "b"
    assert table.metadata == {"owner": "ann"}
    assert table.schema.metadata == {b"k": b"v"}
    assert table.schema.field("id").metadata == {b"unit": b"m"}
    con.execute("CALL lance_unset_config('small', 'a'); CALL lance_unset_table_metadata(small, 'owner')")
    con.execute("CALL lance_unset_schema_metadata(small, 'k'); CALL lance_unset_column_metadata(small, 'id', 'unit')")
    table = ld.dataset(small)
    assert "a" not in table.config()
    assert table.metadata == {}
    assert not table.schema.metadata
    assert not table.schema.field("id").metadata
    with pytest.raises(InvalidInputError, match="lance_set_config without a value: expected a string, found NULL"):
        con.execute("CALL lance_set_config('small', 'a', NULL)")


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT Count FROM lance_set_config('small', 'a', 'b')", [(1,)]),
        ("SELECT count + 1 AS n FROM lance_compact_files('lance.small') AS f WHERE f.Count = 1", [(2,)]),
        ("FROM lance_cleanup_old_versions(small, 0, false)", [(1,)]),
        ("SELECT lance_create_scalar_index.Count FROM lance_create_scalar_index('small', 'id', 'i')", [(1,)]),
        ("SELECT Operation FROM lance_cleanup('small') c, range(2)", [("cleanup",), ("cleanup",)]),
        ("SELECT ?, count(*) FROM lance_set_config('small', 'a', $2) LIMIT 3".replace("?", "$1"), [("x", 1)]),
    ],
)
def test_procedures_are_selected_from(con: ld.Connection, small: Path, sql: str, rows: list[tuple[Any, ...]]) -> None:
    parameters = ["x", "y"] if "$2" in sql else None
    before = ld.dataset(small).version
    assert con.execute(f"EXPLAIN {sql}", parameters).fetchall()[0][0] == "lance_change"
    assert ld.dataset(small).version == before
    assert con.execute(sql, parameters).fetchall() == rows


def test_a_procedure_runs_once_for_a_relation(con: ld.Connection, small: Path) -> None:
    relation = con.sql("SELECT Count FROM lance_set_config('small', 'a', 'b')")
    assert (relation.fetchall(), relation.fetchall()) == ([(1,)], [(1,)])
    assert ld.dataset(small).version == 5


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("OPTIMIZE small WITH (target_rows = 5)", WrongTypeError, "did you mean 'target_rows_per_fragment'"),
        ("OPTIMIZE small WITH (target_rows_per_fragment = 'many')", InvalidInputError, "target_rows_per_fragment"),
        ("OPTIMIZE small WITH", InvalidInputError, r"expected WITH \(name = value, …\), found WITH"),
        ("OPTIMIZE small rubbish", InvalidInputError, "found rubbish"),
        ("OPTIMIZE small WITH (num_threads = 1, num_threads = 2)", InvalidInputError, "given twice"),
        ("OPTIMIZE small WITH (1)", InvalidInputError, "expected name = value, found 1"),
        ("VACUUM small WITH (older_than = true)", InvalidInputError, "older_than"),
        ("VACUUM small WITH (older_than = '3 moons')", InvalidInputError, "not a time span"),
        ("VACUUM small WITH (retain = 1, retain_versions = 2)", InvalidInputError, "two options with the same meaning"),
        ("VACUUM small WITH (retain = 0)", InvalidInputError, "retain_versions"),
        ("CALL lance_cleanup(small, older => 3)", InvalidInputError, "unknown argument 'older'"),
        ("CALL lance_compact()", InvalidInputError, "no argument 'table'"),
        ("CALL lance_compact(NULL)", InvalidInputError, "lance_compact without a table"),
        ("CALL lance_compact('nowhere')", LanceDuckError, "nowhere"),
        ("ALTER TABLE small SET AUTO_CLEANUP (interval = 0)", InvalidInputError, "a number above 0"),
        ("ALTER TABLE small SET AUTO_CLEANUP (every = 3)", WrongTypeError, "unknown option 'every'"),
        ("ALTER TABLE small SET AUTO_CLEANUP (older_than = 'soon')", InvalidInputError, "not a time span"),
        ("ALTER TABLE small UNSET AUTO_CLEANUP (interval = 3)", WrongTypeError, "unknown option 'interval'"),
        ("CHECKPOINT small WITH (dry_run)", WrongTypeError, "CHECKPOINT small: unknown option 'dry_run'"),
        ("REINDEX small rubbish", InvalidInputError, "REINDEX small: end of the statement: .*found rubbish"),
        ("REINDEX small WITH (mode = 'append', retrain)", InvalidInputError, "retrain with another mode"),
        ("CALL lance_compact(small, target_rows => 1)", WrongTypeError, "did you mean 'target_rows_per_fragment'"),
        ("CALL lance_cleanup(small, retain => 1, retain_versions => 1)", InvalidInputError, "found retain, retain_"),
        ("CALL lance_create_scalar_index(small, NULL, 'k')", InvalidInputError, "without a column"),
    ],
)
def test_what_makes_no_sense_is_refused(
    con: ld.Connection, small: Path, sql: str, error: type[LanceDuckError], message: str
) -> None:
    with pytest.raises(error, match=message):
        con.execute(sql)
    assert ld.dataset(small).version == 4


@pytest.mark.parametrize(
    "sql",
    [
        "OPTIMIZE small",
        "VACUUM small WITH (older_than_seconds = 0)",
        "CHECKPOINT small",
        "CALL lance_compact(small)",
        "SELECT * FROM lance_compact_files('small')",
        "ALTER TABLE small SET AUTO_CLEANUP (interval = 2)",
        "ALTER TABLE small UNSET AUTO_CLEANUP",
    ],
)
def test_upkeep_is_explained_and_refused_in_transactions_and_on_read_only_connections(
    con: ld.Connection, small: Path, connect: Connect, sql: str
) -> None:
    ((key, value),) = con.execute(f"EXPLAIN {sql}").fetchall()
    assert key == "lance_change"
    assert "Nothing was" in value
    con.execute("BEGIN")
    with pytest.raises(UnsupportedError, match="in a transaction; COMMIT first"):
        con.execute(sql)
    con.execute("ROLLBACK")
    reader = connect(small.parent, read_only=True)
    with pytest.raises(UnsupportedError, match="read-only"):
        reader.execute(sql)
    assert reader.execute("SHOW MAINTENANCE ON small").fetchall() == [("enabled", "false")]
    assert reader.execute("FROM lance_validate('small')").fetchall() == []
    assert [version["version"] for version in lance.dataset(small).versions()] == [1, 2, 3, 4]


def test_procedures_of_duckdb_are_its_own(con: ld.Connection) -> None:
    con.execute("CREATE MACRO compact(t) AS TABLE SELECT t AS t")
    assert con.execute("FROM compact('small')").fetchall() == [("small",)]
    for name in ("nope", "lance_nothing_like_it"):
        with pytest.raises(duckdb.Error):
            con.execute(f"CALL {name}('small')")


def test_an_unknown_procedure_is_answered_by_the_nearest(con: ld.Connection) -> None:
    with pytest.raises(NotFoundError, match="CALL lance_compct: no such procedure; did you mean 'lance_compact'"):
        con.execute("CALL lance_compct('small')")
    con.execute("CREATE MACRO lance_compct(t) AS TABLE SELECT t AS t")
    assert con.execute("CALL lance_compct('small')").fetchall() == [("small",)]


@pytest.mark.parametrize("name", ["ns.small", "ns.main.small"])
def test_tables_of_attached_folders_are_kept_up(con: ld.Connection, small: Path, name: str) -> None:
    con.execute(f"ATTACH '{small.parent}' AS ns (TYPE LANCE)")
    con.execute(f"CREATE INDEX i ON {name} (id); ALTER TABLE {name} SET AUTO_CLEANUP (interval = 1000)")
    assert figures(con, f"OPTIMIZE {name}")["compact"]["fragments_removed"] == 4
    assert list(figures(con, f"CALL lance_cleanup('{name}')")) == ["cleanup"]
    assert con.execute(f"SELECT index_name FROM lance_indexes('{name}')").fetchall() == [("i",)]
    assert dict(con.execute(f"SHOW MAINTENANCE ON {name}").fetchall())["interval"] == "1000"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE INDEX i ON {t} (id)",
        "REINDEX {t}",
        "OPTIMIZE {t}",
        "VACUUM {t} WITH (older_than_seconds = 0)",
        "CHECKPOINT {t}",
        "ALTER TABLE {t} SET AUTO_CLEANUP (interval = 2)",
        "CALL lance_compact({t})",
        "SELECT Count FROM lance_set_config('{t}', 'a', 'b')",
    ],
)
def test_tables_that_are_attached_read_only_are_not_changed(con: ld.Connection, small: Path, sql: str) -> None:
    con.execute(f"ATTACH '{small.parent}' AS ns (TYPE LANCE, READ_ONLY)")
    with pytest.raises(UnsupportedError, match="the database ns is attached READ_ONLY"):
        con.execute(sql.format(t="ns.small"))
    assert [version["version"] for version in lance.dataset(small).versions()] == [1, 2, 3, 4]
