"""Cells of SQL in JupySQL and marimo, which take our connection by the shape of Python's DB-API."""

from __future__ import annotations

from pathlib import Path

import marimo
import pytest
from IPython.core.interactiveshell import InteractiveShell

import lance_duck as ld


@pytest.fixture
def con(tmp_path: Path) -> ld.Connection:
    ld.write_dataset({"id": range(5), "s": list("abcde")}, tmp_path / "t.lance")
    return ld.connect(tmp_path)


def test_jupysql_accepts_a_connection(con: ld.Connection) -> None:
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "sql")
    shell.user_ns["con"] = con
    shell.run_line_magic("sql", "con")
    assert list(shell.run_line_magic("sql", "SELECT id, s FROM t WHERE id > 2 ORDER BY id")) == [(3, "d"), (4, "e")]
    shell.run_line_magic("sql", "DELETE FROM t WHERE id = 4")
    assert list(shell.run_cell_magic("sql", "", "SELECT count(*) FROM t")) == [(4,)]
    frame = shell.run_line_magic("sql", "SELECT max(id) AS top FROM t").PolarsDataFrame()
    assert frame.to_dict(as_series=False) == {"top": [3]}


def test_marimo_accepts_a_connection(con: ld.Connection) -> None:
    marimo.sql("DELETE FROM t WHERE id = 4", engine=con, output=False)
    frame = marimo.sql("SELECT id, s FROM t WHERE id > 2", engine=con, output=False)
    assert frame.to_dict(as_series=False) == {"id": [3], "s": ["d"]}


def test_marimo_reads_through_the_native_connection(con: ld.Connection) -> None:
    frame = marimo.sql("SELECT count(*) AS n FROM t", engine=con.native, output=False)
    assert frame.to_dict(as_series=False) == {"n": [5]}
