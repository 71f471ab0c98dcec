"""Folders with equal tables, and statements that name paths in them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

import lance_duck as ld

OUTSIDE = [
    "FROM '{out}/t.lance'",
    "SELECT id FROM '{out}/t.lance' WHERE id = 3",
    "FROM '{out}/t.lance' AT (VERSION => 1)",
    "FROM 'file://{out}/t.lance'",
    "FROM '{in}/../out/t.lance'",
    "FROM '{in}/t.lance/../../out/t.lance'",
    "FROM '{in}/link/t.lance'",
    "FROM '{in}/evil.lance'",
    "FROM '{out}/missing.lance'",
    "FROM 's3://bucket/t.lance'",
    "FROM 'memory://somewhere/t.lance'",
    "SELECT rowid FROM '{out}/t.lance'",
    "SELECT match(s, 'duck') FROM '{out}/t.lance'",
    "FROM lance_scan('{out}/t.lance')",
    "FROM lance_vector_search('{out}/t.lance', 'v', [1.0, 1.0], k := 2)",
    "FROM lance_fts('{out}/t.lance', 's', 'duck', k := 3)",
    "FROM lance_hybrid_search('{out}/t.lance', 'v', [1.0, 1.0], 's', 'duck', k := 3)",
    "FROM lance_versions('{out}/t.lance')",
    "FROM lance_indexes('{out}/t.lance')",
    "FROM lance_table_changes('{out}/t.lance', 1, 2)",
    "EXPLAIN FROM '{out}/t.lance'",
    "PREPARE p AS FROM '{out}/t.lance'",
    "CREATE VIEW seen AS FROM '{out}/t.lance'",
    "COPY (FROM '{out}/t.lance') TO '{in}/copied.lance'",
    "INSERT INTO '{out}/t.lance' VALUES (1, 'x', NULL)",
    "UPDATE '{out}/t.lance' SET s = 'y'",
    "DELETE FROM '{out}/t.lance'",
    "TRUNCATE '{out}/t.lance'",
    "ALTER TABLE '{out}/t.lance' ADD COLUMN k INTEGER",
    "CREATE INDEX i ON '{out}/t.lance' (s)",
    "OPTIMIZE '{out}/t.lance'",
    "VACUUM '{out}/t.lance'",
    "DESCRIBE '{out}/t.lance'",
    "COMMENT ON TABLE '{out}/t.lance' IS 'x'",
    "DROP TABLE '{out}/t.lance'",
    "DROP TABLE IF EXISTS '{in}/../out/t.lance'",
    "CREATE TABLE '{out}/w.lance' AS SELECT 1 AS x",
    "CREATE TABLE '{out}/w.lance' (x INTEGER)",
    "CREATE TABLE IF NOT EXISTS '{out}/t.lance' (x INTEGER)",
    "CREATE OR REPLACE TABLE '{out}/t.lance' AS SELECT 1 AS x",
    "CREATE TABLE lance.made (LIKE '{out}/t.lance')",
    "COPY (SELECT 7 AS id) TO '{out}/w.lance'",
    "COPY (SELECT 7 AS id) TO '{out}/t.lance' (MODE 'append')",
    "COPY (SELECT 7 AS id) TO '{in}/link/w.lance'",
    "COPY (SELECT 7 AS id) TO ('{out}/' || 'w.lance')",
    "CALL lance_compact_files('{out}/t.lance')",
    "CALL lance_restore('{out}/t.lance', 1)",
    "CALL lance_create_tag('{out}/t.lance', 'a', 1)",
    "FROM lance_compact_files('{out}/t.lance')",
    "ATTACH '{out}' AS o (TYPE lance)",
    "ATTACH '{in}/link' AS o (TYPE lance)",
    "ATTACH '{in}/..' AS o (TYPE lance)",
    "ATTACH '{out}/new' AS o (TYPE lance)",
    "ATTACH 'db' AS o (TYPE lance, ENDPOINT 'http://localhost:1')",
    "CREATE SECRET (TYPE lance, region 'x')",
    "CREATE SECRET (TYPE lance, SCOPE 's3://bucket', region 'x')",
]
INSIDE = [
    "SELECT s FROM t WHERE id = 7",
    "SELECT count(s) FROM '{in}/t.lance' WHERE id > 3",
    "SELECT count(s) FROM 'file://{in}/t.lance'",
    "FROM lance_scan('{in}/../in/t.lance')",
    "SELECT id FROM t ORDER BY array_distance(v, [1, 1]::FLOAT[2]) LIMIT 1",
    "SELECT id FROM t WHERE match(s, '3') LIMIT 1",
    "FROM lance_vector_search('{in}/t.lance', 'v', [1.0, 1.0], k := 2)",
    "FROM lance_fts('t', 's', 'duck', k := 3)",
    "SELECT count(*) FROM t JOIN u USING (id) WHERE t.id < 5",
    "INSERT INTO t VALUES (1000, 'x', NULL) RETURNING id",
    "INSERT INTO '{in}/t.lance' SELECT id + 2000, s, v FROM u",
    "UPDATE t SET s = u.s FROM u WHERE t.id = u.id AND u.id < 3",
    "UPDATE '{in}/t.lance' SET s = 'y' WHERE id = 1",
    "DELETE FROM t USING u WHERE t.id = u.id AND u.id = 6",
    "MERGE INTO t USING u ON t.id = u.id + 500 WHEN NOT MATCHED THEN INSERT VALUES (u.id + 500, u.s, u.v)",
    "CREATE TABLE lance.w AS SELECT id FROM t",
    "CREATE TABLE '{in}/w2.lance' (x INTEGER)",
    "CREATE TABLE lance.w3 (LIKE t)",
    "COPY (SELECT 7 AS id) TO '{in}/w.lance' (MODE 'append')",
    "COPY lance.w FROM '{in}/w.lance'",
    "CREATE INDEX i ON u (id) USING BTREE",
    "ALTER TABLE u ADD COLUMN k INTEGER DEFAULT 3",
    "OPTIMIZE t",
    "CALL lance_compact_files('{in}/t.lance')",
    "DROP TABLE lance.w",
    "DROP TABLE '{in}/w2.lance'",
    "BEGIN; UPDATE t SET s = 'z' WHERE id = 2; SELECT s FROM t WHERE id = 2; COMMIT",
    "PREPARE p AS UPDATE t SET s = ? WHERE id = 3; EXECUTE p('q')",
]


def written_places(root: Path) -> dict[str, Path]:
    """Write folders `in` and `out` of the same tables, and links from one to the other."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 100, pa.float32()), 2)
    rows = pa.table({"id": pa.array(range(50), pa.int32()), "s": [f"duck {i % 7}" for i in range(50)], "v": vectors})
    for path in ("in/t.lance", "in/u.lance", "out/t.lance", "out/canary.lance"):
        ld.write_dataset(rows, root / path)
    os.symlink(root / "out", root / "in/link")
    os.symlink(root / "out/t.lance", root / "in/evil.lance")
    return {"in": root / "in", "out": root / "out"}


def contents(folder: Path) -> dict[str, int]:
    """Return the time of the last change of everything below a folder."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}
