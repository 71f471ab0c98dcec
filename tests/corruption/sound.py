"""Sound tables to damage, written by pylance: many encodings, few rows."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from corruption.containers import forget_index_sizes, forget_sizes
from lance.indices import IndexConfig
from oracle.kinds import Kind, build
from oracle.tables import KINDS
from support.geometries import point, wkb_table

# One kind for each encoding and layout.
NAMES = """
    int64_random int32_sorted int16_runs int32_constant int64_few float32_random float64_few bool_random
    decimal128_18_4_few timestamp_us_UTC string_few string_many string_urls string_constant string_long
    binary_short binary_huge large_string_many fixed_size_binary_16 json dictionary_int8 fsl_float32_16 fsl_bool_3
    fsl_float32_128 fsl_int32_3_null_items list_int32_null_items list_string list_list list_struct list_fsl
    struct_null_children map_string_int32 fsl_struct packed_fixed packed_string string_zstd string_fullzip
    string_fullzip_zstd float64_bss_lz4 int32_rle blob_v1 blob_v2 null_type
"""


def write_columns(folder: Path, version: str, rows: int = 150) -> Path:
    """Write one fragment; in 2.2 half of the columns have nulls, in older versions those that support nulls."""
    table = folder / f"columns-{version}.lance"
    chosen = [k for k in KINDS if k.name in NAMES.split() and not k.is_refused(_like(version), "none")]
    chosen = [k for k in chosen if version != "2.3" or k.name not in ("fsl_struct", "struct_null_children")]
    arrays = [(k, build(k, _pattern(k, i, version), rows, i)) for i, k in enumerate(chosen)]
    schema = pa.schema([k.field_of(a) for k, a in arrays])
    lance.write_dataset(pa.table([a for _, a in arrays], schema=schema), str(table), data_storage_version=version)
    forget_sizes(table)
    return table


def _like(version: str) -> str:
    """Return a version with the same column kinds."""
    return "2.2" if version == "2.3" else version


def _pattern(kind: Kind, i: int, version: str) -> str:
    return "nulls" if i % 2 and "nulls" in kind.patterns() and not kind.is_refused(_like(version), "nulls") else "none"


def write_history(folder: Path) -> Path:
    """Write a table whose manifest has fragments, deletions, stable row ids, config, a tag and a branch."""
    table = folder / "history.lance"
    data = pa.table(
        {"a": np.arange(90), "s": [f"text {i}" for i in range(90)], "l": [[i] * (i % 3) for i in range(90)]}
    )
    dataset = lance.write_dataset(data, str(table), max_rows_per_file=30, enable_stable_row_ids=True)
    dataset.delete("a % 7 = 3")
    dataset.update({"s": "'new'"}, where="a % 5 = 1")
    dataset.update_config({"k": "v"})
    dataset.tags.create("tagged", 2)
    dataset.create_branch("side", 2)
    return table


def write_deletions(folder: Path, *, many: bool) -> Path:
    """Write a table whose deletion file is a bitmap (many) or an Arrow file (few)."""
    table = folder / f"deletions-{'many' if many else 'few'}.lance"
    dataset = lance.write_dataset(pa.table({"a": np.arange(15_000)}), str(table))
    dataset.delete("a % 2 = 1" if many else "a % 1000 = 1")
    return table


INDEXES = {
    "i": "BTREE",
    "f": "BTREE",
    "s": "BITMAP",
    "z": "ZONEMAP",
    "b": "BLOOMFILTER",
    "l": "LABEL_LIST",
    "g": "NGRAM",
}
LATER_FILTERS = [
    "CAST(j ->> '$.a' AS BIGINT) = 3",
    "CAST(j ->> '$.a' AS BIGINT) IS NULL",
    "ST_GeomFromWKB(g) && 'LINESTRING(2 3, 4 5)'::GEOMETRY",
]
FILTERS = [
    "i = 17",
    "i >= 90 OR i IS NULL",
    "f < 3.0",
    "s IN ('text 3', 'text 7')",
    "s LIKE 'text 1%'",
    "z BETWEEN 10 AND 20",
    "b = 'k7'",
    "array_has_any(l, ['w1', 'w4'])",
    "g LIKE '%trigrams 1%'",
]


def write_later_indexes(folder: Path) -> Path:
    """Write a table with a JSON path index, an R-tree and a MinHash index, and with rows that none covers."""
    table = folder / "later.lance"
    data = wkb_table([None if n % 13 == 5 else point(n % 10, n // 10) for n in range(120)])
    data = data.append_column(
        "j", pa.array([json.dumps({"a": n % 9} if n % 4 else {}) for n in range(120)], pa.json_())
    )
    data = data.append_column("texts", pa.array([f"the {n % 7} lake and a duck" for n in range(120)]))
    dataset = lance.write_dataset(data.slice(0, 100), str(table), max_rows_per_file=40)
    dataset.create_scalar_index("j", IndexConfig("json", {"path": "$.a", "target_index_type": "btree"}))
    dataset.create_scalar_index("g", IndexConfig("rtree", {"page_size": 16}))
    dataset.create_scalar_index("texts", IndexConfig("minhashlsh", {"num_hashes": 32, "num_bands": 16}))
    dataset.delete("id % 9 = 4")
    lance.write_dataset(data.slice(100), str(table), mode="append")
    forget_index_sizes(table)
    return table


def write_indexed(folder: Path) -> Path:
    """Write a table with an index of every kind, of deleted rows, nulls, and rows that none covers."""
    table = folder / "indexed.lance"
    rows = range(150)
    data = pa.table(
        {
            "i": [None if n % 13 == 5 else n * 7 % 97 for n in rows],
            "f": [float("nan") if n % 11 == 3 else n / 3 for n in rows],
            "s": [None if n % 17 == 2 else f"text {n % 20}" for n in rows],
            "z": rows,
            "b": [f"k{n}" for n in rows],
            "l": [None if n % 19 == 4 else [f"w{n % 5}", f"w{n % 3}"] for n in rows],
            "g": [None if n % 7 == 1 else f"some trigrams {n % 30}" for n in rows],
        }
    )
    dataset = lance.write_dataset(data.slice(0, 120), str(table), max_rows_per_file=40)
    for column, kind in INDEXES.items():
        dataset.create_scalar_index(column, kind)
    dataset.delete("z % 9 = 4")
    lance.write_dataset(data.slice(120), str(table), mode="append")
    forget_index_sizes(table)
    return table
