"""Columns and fields with other types: pylance reads the files of every format version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld

VERSIONS = ("0.1", "2.0", "2.1", "2.2")
ITEMS = pa.table({"l": [[1, None], [], [3]], "m": [[[1], []], [[2, 3]], []]})


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows that pylance reads."""
    found: list[dict[str, Any]] = lance.dataset(folder / "t.lance").to_table().to_pylist()
    return found


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_pylance_reads_lists_whose_items_were_cast(tmp_path: Path, version: str) -> None:
    table = ld.write_dataset(ITEMS, tmp_path / "t.lance", data_storage_version=version)
    table.delete("l[1] = 3")
    table.alter_columns({"path": "l.item", "data_type": pa.int8()})
    table.alter_columns({"path": "m.item.item", "data_type": pa.int16()})
    assert table.schema == pa.schema({"l": pa.list_(pa.int8()), "m": pa.list_(pa.list_(pa.int16()))})
    assert rows(tmp_path) == ITEMS.slice(0, 2).to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_columns_with_other_types(tmp_path: Path, version: str) -> None:
    before = pa.table({"a": [1, 2, 3], "s": [{"x": 1, "y": "p"}, {"x": 2, "y": None}, {"x": 3, "y": "r"}]})
    ld.write_dataset(before, tmp_path / "t.lance", data_storage_version=version, max_rows_per_file=2)
    with ld.connect(tmp_path) as con:
        con.execute("DELETE FROM t WHERE a = 1")
        con.execute("ALTER TABLE t ALTER a TYPE VARCHAR USING a || s['y']")
        con.execute("ALTER TABLE t ALTER s TYPE STRUCT(x DOUBLE)")
    assert rows(tmp_path) == [{"a": None, "s": {"x": 2.0}}, {"a": "3r", "s": {"x": 3.0}}]


@pytest.mark.skipif(duckdb.__version__ < "2", reason="a syntax error of DuckDB's")
@pytest.mark.parametrize("version", VERSIONS[1:])
def test_pylance_reads_fields_with_other_types(tmp_path: Path, version: str) -> None:
    kind = pa.list_(pa.struct({"k": pa.int64(), "n": pa.int64()}))
    before = pa.table({"s": [{"x": 1, "y": 2}] * 3, "l": pa.array([[{"k": 1, "n": 2}], [], [{"k": 3, "n": 4}]], kind)})
    ld.write_dataset(before, tmp_path / "t.lance", data_storage_version=version)
    with ld.connect(tmp_path) as con:
        con.execute("DELETE FROM t WHERE len(l) = 0")
        con.execute("ALTER TABLE t ALTER s.x TYPE VARCHAR")
        con.execute("ALTER TABLE t ALTER l.element.k TYPE VARCHAR")
        con.execute("ALTER TABLE t ADD COLUMN l.element.d INTEGER DEFAULT 7")
    assert [row["s"] for row in rows(tmp_path)] == [{"x": "1", "y": 2}] * 2
    assert [row["l"] for row in rows(tmp_path)] == [[{"k": "1", "n": 2, "d": 7}], [{"k": "3", "n": 4, "d": 7}]]
