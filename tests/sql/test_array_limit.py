"""Columns that exceed one Arrow array, in all reads and changes of a table with a lowered limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.arrow import limits

ROWS = 70


def table(start: int, stop: int) -> pa.Table:
    """Rows of strings, bytes and lists, each of 100 to 400 bytes."""
    texts = [f"{number:03}" * 60 for number in range(start, stop)]
    return pa.table(
        {
            "i": range(start, stop),
            "s": texts,
            "b": pa.array([text.encode() for text in texts]),
            "l": [list(range(40)) for _ in texts],
            "ls": [[text, text] for text in texts],
            "st": [{"s": text} for text in texts],
        }
    )


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def uri(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a table of three fragments that each exceed the limit."""
    path = str(tmp_path / "t.lance")
    for start, stop in ((0, 60), (60, 65), (65, ROWS)):
        ld.write_dataset(table(start, stop), path, mode="append", data_storage_version=request.param)
    monkeypatch.setattr(limits, "MOST_BYTES", 1000)
    return path


def rows_of(data: pa.Table) -> list[dict[str, Any]]:
    return sorted(data.to_pylist(), key=lambda row: row["i"])


def test_scans_and_takes_return_several_chunks(uri: str) -> None:
    dataset, rows = ld.dataset(uri), table(0, ROWS).to_pylist()
    assert dataset.to_table().to_pylist() == rows
    batches = list(dataset.to_batches(batch_size=10_000))
    assert len(batches) > 20
    assert pa.Table.from_batches(batches).to_pylist() == rows
    assert dataset.take(list(range(ROWS - 1, -1, -1))).to_pylist() == rows[::-1]
    assert dataset.take([3] * 30).to_pylist() == [rows[3]] * 30
    assert dataset.take_rows(list(range(30))).to_pylist() == rows[:30]
    assert dataset.get_fragments()[0].take(list(range(30))).to_pylist() == rows[:30]
    assert dataset.to_table(filter="s > '010'").to_pylist() == rows[10:]
    assert dataset.to_table(filter="length(s) > 3 AND i % 2 = 0").to_pylist() == rows[::2]
    assert dataset.to_table(limit=40, offset=3).to_pylist() == rows[3:43]
    assert dataset.count_rows(filter="s > '010'") == 60
    assert dataset.scanner(order_by=[ld.ColumnOrdering("s", ascending=False)]).to_table().to_pylist() == rows[::-1]
    assert dataset.scanner().take(list(range(30, 0, -1))).to_pylist() == rows[30:0:-1]


def test_sql_reads_all_rows(uri: str) -> None:
    connection = ld.connect({"t": ld.dataset(uri)})
    text = "SELECT count(*), sum(length(s)), sum(octet_length(b)), sum(len(l)), sum(length(st.s)), sum(len(ls)) FROM t"
    assert connection.execute(text).fetchall() == [(70, 12600, 12600, 2800, 12600, 140)]
    assert [row[0] for row in connection.execute("SELECT * FROM t ORDER BY i").fetchall()] == list(range(ROWS))


def test_changes_and_compaction_keep_all_values(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ld.dataset(uri).merge_insert("i").when_matched_update_all().when_not_matched_insert_all().execute(table(40, 90))
    ld.dataset(uri).merge_insert("s").when_matched_update_all().execute(table(40, 90).select(["s", "b"]))
    ld.dataset(uri).update({"s": "concat(s, 'x')"})
    connection = ld.connect({"t": ld.dataset(uri)})
    assert connection.execute("UPDATE t SET s = s || 'y'").fetchall() == [(90,)]
    assert connection.execute("DELETE FROM t WHERE s < '010'").fetchall() == [(10,)]
    dataset = ld.dataset(uri)
    dataset.create_scalar_index("s", "ZONEMAP")
    dataset.optimize.compact_files()
    assert ld.dataset(uri).to_table(filter=f"s = '{'015' * 60}xy'").column("i").to_pylist() == [15]
    monkeypatch.setattr(limits, "MOST_BYTES", 1 << 30)
    expected = [row | {"s": row["s"] + "xy"} for row in table(10, 90).to_pylist()]
    assert rows_of(ld.dataset(uri).to_table()) == expected
    assert len(ld.dataset(uri).get_fragments()) == 1


def test_searches_return_several_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = pa.array([[float(number), 0.0] for number in range(ROWS)], pa.list_(pa.float32(), 2))
    words = pa.array([f"duck {number}" for number in range(ROWS)])
    dataset = ld.write_dataset(
        table(0, ROWS).select(["i", "s"]).append_column("v", vectors).append_column("w", words), tmp_path / "t.lance"
    )
    dataset.create_scalar_index("w", "INVERTED")
    monkeypatch.setattr(limits, "MOST_BYTES", 1000)
    nearest = {"column": "v", "q": [0, 0], "k": 40}
    expected = dataset.to_table(columns=["i", "s"])
    found = dataset.to_table(nearest=nearest, columns=["i", "s"])
    assert found.select(["i", "s"]).equals(expected.slice(0, 40))
    batches = list(dataset.to_batches(nearest=nearest, columns=["i", "s"], batch_size=30))
    assert pa.Table.from_batches(batches).select(["i", "s"]).equals(expected.slice(0, 40))
    found = dataset.to_table(full_text_query="duck", columns=["i", "s"])
    assert found.sort_by("i").select(["i", "s"]).equals(expected)
    with ld.connect(tmp_path) as connection:
        searched = connection.execute("SELECT i, s FROM lance.t ORDER BY array_distance(v, [0, 0]::FLOAT[2]) LIMIT 40")
        assert searched.fetchall() == [(row["i"], row["s"]) for row in expected.slice(0, 40).to_pylist()]
        searched = connection.execute("SELECT i, s FROM lance.t WHERE match(w, 'duck') ORDER BY i")
        assert searched.fetchall() == [(row["i"], row["s"]) for row in expected.to_pylist()]
        function = f"lance_vector_search('{tmp_path}/t.lance', 'v', [0, 0]::FLOAT[2], k = 40)"
        searched = connection.execute(f"SELECT i, s FROM {function} ORDER BY i")
        assert searched.fetchall() == [(row["i"], row["s"]) for row in expected.slice(0, 40).to_pylist()]
