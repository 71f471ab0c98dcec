"""Procedures in SELECT and of relations; `statements/lance/upkeep.sql` has the statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pytest

import lance_duck as ld


@pytest.fixture
def small(folder: Path) -> Path:
    """`small.lance`: four fragments of one row each, as four versions."""
    for i in range(4):
        ld.write_dataset({"id": [i]}, folder / "small.lance", mode="append")
    return folder / "small.lance"


def fragments(path: Path) -> int:
    return len(lance.dataset(path).get_fragments())


def test_a_memory_limit_with_too_many_digits_is_rejected(con: ld.Connection, small: Path) -> None:
    con.execute("CREATE INDEX i ON small (id); INSERT INTO small VALUES (4)")
    for sql in (
        f"CALL lance_compact(small, memory_limit => '{'9' * 5000}')",
        f"CALL lance_optimize_indexes(small, memory_limit => '{'9' * 400}GB')",
    ):
        with pytest.raises(ld.InvalidInputError, match="memory_limit: not a number of bytes"):
            con.execute(sql)


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


def test_a_relation_over_a_procedure_runs_it_once(con: ld.Connection, small: Path) -> None:
    relation = con.sql("SELECT Count FROM lance_set_config('small', 'a', 'b')")
    assert (relation.fetchall(), relation.fetchall()) == ([(1,)], [(1,)])
    assert ld.dataset(small).version == 5


def test_if_exists_ignores_missing_tables_and_indexes(con: ld.Connection, small: Path) -> None:
    before = ld.dataset(small).version
    con.execute("CREATE TABLE memory.main.plain AS SELECT 1 AS id")
    assert con.execute("ALTER INDEX IF EXISTS nope ON small OPTIMIZE").fetchall() == []
    for clause in ("SET AUTO_CLEANUP (interval = 2)", "UNSET AUTO_CLEANUP"):
        assert con.execute(f"ALTER TABLE IF EXISTS nowhere {clause}").fetchall() == []
        with pytest.raises(ld.NotFoundError, match="no such table"):
            con.execute(f"ALTER TABLE nowhere {clause}")
        with pytest.raises(ld.UnsupportedError, match="not a Lance table"):
            con.execute(f"ALTER TABLE IF EXISTS memory.main.plain {clause}")
    with pytest.raises(ld.IndexNotFoundError, match="nope"):
        con.execute("ALTER INDEX nope ON small OPTIMIZE")
    assert ld.dataset(small).version == before
    con.execute("ALTER TABLE IF EXISTS small SET AUTO_CLEANUP (interval = 2)")
    assert ld.dataset(small).version == before + 1


def test_missing_arguments_of_procedures_are_named(con: ld.Connection, small: Path) -> None:
    with pytest.raises(ld.InvalidInputError, match="argument 'delete_unverified' is missing"):
        con.execute("CALL lance_cleanup_old_versions('small', 0)")
