"""The adapter in Harlequin: its own command line, and its catalogue."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harlequin.exception import HarlequinConnectionError, HarlequinQueryError
from harlequin.plugins import load_adapter_plugins

import lance_duck as ld


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ld.write_dataset({"id": range(5), "s": list("abcde")}, tmp_path / "t.lance")
    return tmp_path


def connected(*places: Path, **options: Any) -> Any:
    adapter = load_adapter_plugins()["lance"]
    return adapter([str(place) for place in places], **options).connect()


def test_its_command_line_reads_and_changes_tables(folder: Path) -> None:
    def hsql(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from harlequin.hsql import main; main()", "-a", "lance", str(folder), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    statements = ("-c", "DELETE FROM t WHERE id = 1", "-c", "SELECT * FROM t WHERE id < 3")
    changed = hsql(*statements, "--json", "--result", "last")
    assert changed.returncode == 0, changed.stderr
    assert json.loads(changed.stdout) == [{"id": 0, "s": "a"}, {"id": 2, "s": "c"}]
    refused = hsql("-r", "-c", "DELETE FROM t")
    assert (refused.returncode, ld.dataset(folder / "t.lance").count_rows()) == (1, 4)
    assert "read-only" in refused.stderr


def test_the_catalogue_lists_tables_and_columns(folder: Path) -> None:
    connection = connected(folder)
    (lance,) = [item for item in connection.get_catalog().items if item.label == "lance"]
    tables = [table for schema in lance.fetch_children() for table in schema.fetch_children()]
    columns = {table.label: [(item.label, item.type_label) for item in table.fetch_children()] for table in tables}
    assert columns == {"t": [("id", "##"), ("s", "s")]}
    assert [result.parents for result in connection.search_catalog("id")] == [("lance", "main", "t")]
    connection.close()


def test_the_catalogue_lists_schemas_and_views(folder: Path) -> None:
    with ld.connect(folder) as con:
        con.execute("CREATE VIEW v AS SELECT id AS a FROM t; CREATE SCHEMA s; CREATE TABLE s.x AS SELECT 1 AS b")
    connection = connected(folder)
    (lance,) = [item for item in connection.get_catalog().items if item.label == "lance"]
    listed = {
        schema.label: {
            table.label: [column.label for column in table.fetch_children()] for table in schema.fetch_children()
        }
        for schema in lance.fetch_children()
    }
    assert listed == {"main": {"t": ["id", "s"], "v": ["a"]}, "s": {"x": ["b"]}}
    connection.close()


def test_a_cursor_has_columns_a_limit_and_rows(folder: Path) -> None:
    cursor = connected(folder / "t.lance").execute("SELECT s FROM t WHERE id > 2 ORDER BY s")
    assert cursor.columns() == [("s", "s")]
    assert cursor.set_limit(1).fetchall().to_pylist() == [{"s": "d"}]


@pytest.mark.parametrize("query", ["SELEC", "FROM nowhere", "UPDATE t SET y = 1", "FROM t AT (VERSION => 9)"])
def test_failed_queries_raise_harlequin_errors(folder: Path, query: str) -> None:
    with pytest.raises(HarlequinQueryError):
        connected(folder).execute(query).fetchall()


def test_a_missing_folder_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(HarlequinConnectionError, match="nowhere: no such folder"):
        connected(tmp_path / "nowhere")
