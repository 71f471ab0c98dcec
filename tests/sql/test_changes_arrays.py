"""Upserts and MERGE of tables with arrays: in outer joins that hash these, DuckDB 2.0.0 fails, or makes zeros of NULL.

Seed 700022 of `python -m trust --only "sql changes"` found it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import lance_duck as ld

_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
_SCHEMA = pa.schema([pa.field("id", pa.int64(), False, _KEY), ("a", pa.int64()), ("arr", pa.list_(pa.float32(), 2))])
Row = tuple[int, int | None, tuple[float, float] | None]

_MERGE = "MERGE INTO t USING source AS s ON t.id = s.id WHEN MATCHED THEN"
_NEW = "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, 7)"
STATEMENTS = [
    "INSERT OR REPLACE INTO t (id, a) SELECT id, 7 FROM source",
    "INSERT OR REPLACE INTO t (id, a) SELECT id, 7 FROM source RETURNING *",
    "INSERT INTO t (id, a) SELECT id, 7 FROM source "
    "ON CONFLICT DO UPDATE SET a = excluded.a, arr = t.arr RETURNING arr",
    "MERGE INTO t USING source AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = 7, arr = t.arr "
    "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, 7)",
    "MERGE INTO t USING source AS s ON t.id = s.id + 0 -- the join ends in a comment\n"
    "WHEN MATCHED THEN UPDATE SET a = s.id - s.id + 7, arr = t.arr "
    "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, 7)",
    f"{_MERGE} UPDATE SET a = 7 {_NEW} RETURNING t.*",
    f"{_MERGE} UPDATE SET a = CASE WHEN t.arr IS NULL OR t.arr IS NOT NULL THEN 7 END {_NEW}",
    "MERGE INTO t USING source AS s ON t.id = s.id -- by this\nWHEN MATCHED AND t.arr IS NULL THEN UPDATE SET a = 7 "
    f"WHEN MATCHED THEN UPDATE SET a = 7, arr = t.arr {_NEW}",
    f"{_MERGE} UPDATE SET a = 7 {_NEW} WHEN NOT MATCHED BY SOURCE AND t.arr[1] = -1 THEN DELETE",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_unset_array_elements_keep_their_value(tmp_path: Path, connect: Callable[..., ld.Connection], sql: str) -> None:
    random = Random(7)
    schema = _SCHEMA if sql.startswith("INSERT") else pa.schema([pa.field(field.name, field.type) for field in _SCHEMA])
    dataset, con = ld.write_dataset(schema.empty_table(), tmp_path / "t.lance"), connect(tmp_path)
    for _ in range(6):
        rows: dict[int, Row] = {}
        for id_ in random.sample(range(12), random.randrange(2, 5)):
            rows[id_] = (id_, 1, None if random.random() < 0.5 else (float(id_), 0.5))
        values = [dict(zip(_SCHEMA.names, row, strict=True)) for row in rows.values()]
        dataset = ld.write_dataset(pa.Table.from_pylist(values, schema), dataset.uri, mode="overwrite")
        ids = random.sample(range(12), 6)
        source = pa.table({"id": ids})
        con.register("source", source)
        expected = rows | {id_: (id_, 7, rows[id_][2] if id_ in rows else None) for id_ in ids}

        returned = con.execute(sql).fetchall()

        assert sorted(con.execute("FROM t").fetchall()) == sorted(expected.values())
        if sql.endswith("*"):
            assert sorted(returned) == sorted(expected[id_] for id_ in ids)
        elif "RETURNING" in sql:
            assert sorted(map(repr, returned)) == sorted(repr((expected[id_][2],)) for id_ in ids)
        else:
            assert returned == [(6,)]
