"""Statements with the effect READ do not change a folder, also with a connection that may write."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from sql.test_statement_files import FILES
from support.statements import read_cases

import lance_duck as ld
from lance_duck.duck.changes.effects import EffectKind, effects
from lance_duck.errors import LanceDuckError

STATEMENTS = sorted({case.sql for file in FILES for case in read_cases(file) if "{" not in case.sql})


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kinds(sql: str) -> set[EffectKind]:
    try:
        return {effect.kind for effect in effects(sql)}
    except (duckdb.Error, LanceDuckError):
        return {EffectKind.OTHER}


@pytest.mark.parametrize("read_only", [True, False])
def test_reads_leave_the_bytes_of_the_folder_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("t", "trips", "u"):
        ld.write_dataset(
            pa.table({"id": range(5), "name": list("abcde"), "city": list("vwxyz")}), tmp_path / f"{name}.lance"
        )
    explained = [f"EXPLAIN {sql}" for sql in STATEMENTS if kinds(sql) == {EffectKind.CHANGE} and ";" not in sql]
    reads = [sql for sql in (*STATEMENTS, *explained) if kinds(sql) == {EffectKind.READ}]
    assert len(reads) > 300
    before = bytes_below(tmp_path)
    with ld.connect(tmp_path, read_only=read_only, confined=True) as con:
        for sql in reads:
            with con.cursor() as cursor, suppress(duckdb.Error, LanceDuckError):
                cursor.execute(sql).fetchall()
        assert bytes_below(tmp_path) == before


def test_every_change_of_a_folder_has_another_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ld.connect(tmp_path, confined=True) as con:
        for sql in ("CREATE TABLE lance.t AS SELECT range AS id, 'a' AS name FROM range(9)", *STATEMENTS[::7]):
            before = bytes_below(tmp_path)
            with suppress(duckdb.Error, LanceDuckError):
                con.execute(sql).fetchall()
            if con.in_transaction:
                con.rollback()
            assert bytes_below(tmp_path) == before or kinds(sql) != {EffectKind.READ}, sql
