"""Write the golden tables with pylance, together with the rows that pylance reads from each version.

    tables/<name>.lance               the table
    expected/<name>/facts.json        latest version, versions with row counts, tags, branches
    expected/<name>/<at>.arrow        Arrow IPC: all columns at a version, tag or branch
    expected/<name>/<at>.hidden.arrow the same with _rowid, _rowaddr and the row-version columns
    tpch/<table>.lance, tpch/answers  the TPC-H tables, and DuckDB's answers from the same data in Arrow

Run it from the root of the repository: `make golden`, or this module with the names of some tables. Names of data files
and times differ from run to run, contents do not.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import lance
import lancedb
import numpy as np
import pyarrow as pa
from lance.indices import IndexConfig
from lancedb import LsmWriteSpec
from lancedb.index import BTree

import lance_duck as ld
from benchmarks.tpch_data import tpch
from lance_duck.wire.pb import table_pb2
from tests.support.overlays import add_overlay
from tests.versions.environments import VERSIONS, python_of

WRITER = "14.0.2"
HERE = Path(__file__).parent
TPCH_SCALE, TPCH_SEED = 0.002, 77
HIDDEN = ["_rowid", "_rowaddr"]
LINEAGE = ["_row_created_at_version", "_row_last_updated_at_version"]

Write = Callable[[str], None]
TABLES: dict[str, Write] = {}


def table(write: Write) -> Write:
    """Register the writer of tables/<its name>.lance."""
    TABLES[write.__name__] = write
    return write


def with_nulls(values: list[Any], every: int = 7) -> list[Any]:
    return [None if i % every == 3 else value for i, value in enumerate(values)]


def flat_columns(n: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    day, noon = date(2024, 2, 28), datetime(2024, 2, 28, 12, tzinfo=UTC)
    numbers = rng.integers(0, 1 << 62, n).tolist()
    return {
        "i8": pa.array([i % 100 - 50 for i in range(n)], pa.int8()),
        "u16": pa.array([i % 5000 for i in range(n)], pa.uint16()),
        "i32_small": pa.array(with_nulls([i % 91 for i in range(n)]), pa.int32()),
        "i32_runs": pa.array([i // 100 for i in range(n)], pa.int32()),
        "i64_random": pa.array(with_nulls(numbers), pa.int64()),
        "i64_few": pa.array([(i * 7919) % 5 * 10**12 for i in range(n)], pa.int64()),
        "u64": pa.array([2 * number for number in numbers], pa.uint64()),
        "constant": pa.array([42] * n, pa.int32()),
        "all_null": pa.array([None] * n, pa.int32()),
        "none": pa.nulls(n),
        "f16": pa.array(rng.standard_normal(n).astype(np.float16)),
        "f32": pa.array(with_nulls(rng.standard_normal(n).astype(np.float32).tolist()), pa.float32()),
        "f64": pa.array([float("nan") if i % 50 == 0 else i / 3 for i in range(n)]),
        "flag": pa.array(with_nulls([i % 3 == 0 for i in range(n)])),
        "money": pa.array([Decimal(i * 1999 - 10**6).scaleb(-2) for i in range(n)], pa.decimal128(15, 2)),
        "huge": pa.array(with_nulls([Decimal(number) * 10**20 for number in numbers]), pa.decimal256(50, 0)),
        "day": pa.array([day + timedelta(days=i) for i in range(n)], pa.date32()),
        "clock": pa.array([time(i % 24, i % 60, i % 59, i) for i in range(n)], pa.time64("us")),
        "moment": pa.array([noon + timedelta(milliseconds=i * 1000 + i) for i in range(n)], pa.timestamp("us", "UTC")),
        "span": pa.array(with_nulls([timedelta(seconds=i) for i in range(n)]), pa.duration("ms")),
    }


def text_columns(n: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    words = ["amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "harbor", "indigo", "juniper"]
    lines = [" ".join(words[j] for j in rng.integers(0, len(words), 5)) for _ in range(n)]
    return {
        "colour": pa.array(with_nulls([words[i % 4] for i in range(n)])),
        "line": pa.array(with_nulls([f"{line} {i}" for i, line in enumerate(lines)])),
        "unicode": pa.array(["", "é", "snow ☃", "𝄞 clef", "\x00nul"][i % 5] for i in range(n)),
        "long_line": pa.array([line * 9 if i % 6 == 0 else None for i, line in enumerate(lines)]),
        "large": pa.array([line[: i % 9] for i, line in enumerate(lines)], pa.large_string()),
        "bytes": pa.array(with_nulls([rng.bytes(i % 11) for i in range(n)]), pa.binary()),
        "key": pa.array([rng.bytes(16) for _ in range(n)], pa.binary(16)),
        "coded": pa.array(with_nulls([words[i % 6] for i in range(n)])).dictionary_encode(),
    }


def vector_columns(n: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    small = rng.standard_normal((n, 16)).astype(np.float32).tolist()
    return {
        "v16": pa.array(with_nulls(small), pa.list_(pa.float32(), 16)),
        "v_f16": pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(n * 8).astype(np.float16)), 8),
        "v_u8": pa.FixedSizeListArray.from_arrays(pa.array(rng.integers(0, 256, n * 4).astype(np.uint8)), 4),
        "v128": pa.array(rng.standard_normal((n, 128)).astype(np.float32).tolist(), pa.list_(pa.float32(), 128)),
    }


def nested_columns(n: int, version: str) -> dict[str, pa.Array]:
    lists = [list(range(i % 5)) for i in range(n)]
    points = [{"x": i, "name": f"p{i % 9}"} for i in range(n)]
    columns = {
        "ints": pa.array(with_nulls(lists), pa.list_(pa.int32())),
        "words": pa.array([[f"w{j % 7}" for j in range(i % 4)] for i in range(n)], pa.list_(pa.string())),
        "deep": pa.array([[list(range(j)) for j in range(i % 4)] for i in range(n)], pa.list_(pa.list_(pa.int64()))),
        "points": pa.array([points[i : i + i % 3] for i in range(n)]),
        "point": pa.array(points if version == "2.0" else with_nulls(points)),
    }
    if version in ("2.2", "2.3"):
        pairs = [[(f"k{j}", float(i)) for j in range(i % 3)] for i in range(n)]
        columns["map"] = pa.array(with_nulls(pairs), pa.map_(pa.string(), pa.float64()))
    return columns


def write_kinds(path: str, version: str) -> None:
    rng, n = np.random.default_rng(22), 240 if version == "legacy" else 1100
    columns = flat_columns(n, rng) | text_columns(n, rng) | nested_columns(n, version)
    data = pa.table(columns, metadata={"purpose": "golden"})
    if version not in ("legacy", "2.0"):
        wanted = pa.field("line_zstd", pa.string(), metadata={"lance-encoding:compression": "zstd"})
        data = data.append_column(wanted, data["line"])
    lance.write_dataset(data, path, data_storage_version=version, max_rows_per_file=1000, max_rows_per_group=100)


@table
def kinds_01(path: str) -> None:
    write_kinds(path, "legacy")


@table
def written_01(path: str) -> None:
    """Write the column kinds that version 0.1 supports with this package, and change the table."""
    rows = lance.dataset("kinds_01.lance").to_table()
    options = {"max_rows_per_group": 100, "storage_options": {"fsync": "false"}}
    dataset = ld.write_dataset(rows.slice(0, 150), path, data_storage_version="legacy", **options)
    dataset = ld.write_dataset(rows.slice(150), dataset, mode="append", **options)
    dataset.delete("u16 % 50 = 3")
    dataset.update({"line": "'new'"}, where="u16 = 7")
    dataset.add_columns({"more": "i8 + 1"})


@table
def kinds_23(path: str) -> None:
    write_kinds(path, "2.3")


@table
def kinds_20(path: str) -> None:
    write_kinds(path, "2.0")


@table
def kinds_21(path: str) -> None:
    write_kinds(path, "2.1")


@table
def kinds_22(path: str) -> None:
    write_kinds(path, "2.2")


@table
def vectors(path: str) -> None:
    rng, n = np.random.default_rng(16), 200
    lance.write_dataset(pa.table({"id": range(n)} | vector_columns(n, rng)), path)


@table
def deletions(path: str) -> None:
    """Delete few rows of fragment 0, many of fragment 1, nearly all of fragment 2, and none of fragment 3."""
    data = pa.table({"id": pa.array(range(60_000), pa.int32())})
    dataset = lance.write_dataset(data, path, max_rows_per_file=15_000)
    dataset.delete("id IN (0, 7, 8, 14999)")
    dataset.delete("id >= 15000 AND id < 30000 AND id % 2 = 0")
    dataset.delete("id >= 30000 AND id < 44998")


@table
def rowids(path: str) -> None:
    """Stable row ids through update, delete, append and compaction."""
    dataset = lance.write_dataset(
        pa.table({"id": range(600), "x": [0] * 600}), path, enable_stable_row_ids=True, max_rows_per_file=200
    )
    dataset.update({"x": "id * 10"}, where="id % 50 = 1")
    dataset.delete("id % 7 = 0")
    lance.write_dataset(pa.table({"id": range(600, 650), "x": [1] * 50}), dataset, mode="append")
    dataset = lance.dataset(path)
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    dataset.update({"x": "-1"}, where="id = 649")


@table
def history(path: str) -> None:
    """Versions, tags, config and metadata."""
    dataset = lance.write_dataset(pa.table({"id": range(10), "word": [f"w{i}" for i in range(10)]}), path)
    dataset.tags.create("first", 1)
    dataset = lance.write_dataset(pa.table({"id": range(10, 15), "word": ["x"] * 5}), path, mode="append")
    dataset.update({"word": "'changed'"}, where="id < 3")
    dataset.delete("id = 4")
    dataset.tags.create("stable", dataset.version)
    dataset.update_config({"team": "harbor"})
    lance.write_dataset(pa.table({"id": [100]}), path, mode="overwrite")


@table
def evolved(path: str) -> None:
    """Columns added, renamed, dropped and cast; several data files in a fragment; columns that a fragment lacks."""
    columns = {"id": pa.array(range(40), pa.int32()), "a": range(40), "gone": ["z"] * 40}
    data = pa.table(columns | {"s": [{"p": i} for i in range(40)]})
    dataset = lance.write_dataset(data, path, max_rows_per_file=25)
    dataset.add_columns({"double": "a * 2"})
    dataset.alter_columns({"path": "a", "name": "renamed"})
    dataset.drop_columns(["gone"])
    dataset.alter_columns({"path": "id", "data_type": pa.int64()})
    lance.write_dataset(pa.table({"id": pa.array([40, 41]), "renamed": [7, 8]}), path, mode="append")
    lance.dataset(path).add_columns(pa.schema([pa.field("later", pa.string())]))


@table
def v1_names(path: str) -> None:
    """Manifests named 1.manifest, 2.manifest, …, 11.manifest."""
    dataset = lance.write_dataset(pa.table({"id": [0]}), path, enable_v2_manifest_paths=False)
    for i in range(1, 11):
        dataset = lance.write_dataset(pa.table({"id": [i]}), path, mode="append")
    dataset.tags.create("nine", 9)


@table
def mixed_files(path: str) -> None:
    """Fragments of 2.2, 2.1 and 2.0 in one table."""
    for version, mode in (("2.2", "create"), ("2.1", "append"), ("2.0", "append")):
        data = pa.table({"id": range(30), "word": [f"{version} {i % 3}" for i in range(30)]})
        lance.write_dataset(data, path, mode=mode, data_storage_version=version)


@table
def indexed(path: str) -> None:
    """An index section before the manifest, and rows that the index does not cover."""
    data = pa.table({"id": range(500), "word": [f"w{i % 20}" for i in range(500)]})
    dataset = lance.write_dataset(data, path)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("word", "BITMAP")
    lance.write_dataset(data.slice(0, 5), path, mode="append")


@table
def old_indexes(path: str) -> None:
    """Write index entries of writers of all ages; each column is named after the peculiarity of its entry."""
    rows = range(60)
    numbers = {name: [n * 7 % 60 if n % 9 else None for n in rows] for name in ODD_ENTRIES}
    dataset = lance.write_dataset(pa.table({"id": rows} | numbers), path, max_rows_per_file=20)
    for name in ODD_ENTRIES:
        dataset.create_scalar_index(name, "BITMAP" if "bitmap_kind" in name else "BTREE", name=name)
    lance.write_dataset(pa.table({name: [7] for name in ("id", *ODD_ENTRIES)}), dataset, mode="append")
    lance.dataset(path).cleanup_old_versions(timedelta(0), delete_unverified=True)
    (manifest,) = Path(path, "_versions").glob("*.manifest")
    manifest.write_bytes(with_entries(manifest.read_bytes(), lambda entry: ODD_ENTRIES[entry.name](entry)))


def details(type_url: str) -> Callable[[Any], None]:
    return lambda entry: setattr(entry.index_details, "type_url", type_url)


def version(number: int) -> Callable[[Any], None]:
    return lambda entry: setattr(entry, "index_version", number)


def without(*names: str) -> Callable[[Any], None]:
    return lambda entry: [entry.ClearField(name) for name in names] and None


ODD_ENTRIES: dict[str, Callable[[Any], None]] = {
    "other_package": details("/lance.index.pb.BTreeIndexDetails"),
    "other_case": details("/lance.table.btreeindexdetails"),
    "other_package_bitmap_kind": details("/lance.index.pb.BitmapIndexDetails"),
    "no_version_files_time": without("index_version", "files", "created_at"),
    "version_1": version(1),
    "version_2": version(2),
    "version_1000": version(1000),
    "bitmap_kind_version_1": version(1),
    "no_details": without("index_details"),
    "no_fragments": without("fragment_bitmap"),
    "unknown_kind": details("/elsewhere.table.PerfectHashIndexDetails"),
    "vector_kind": details("/lance.table.VectorIndexDetails"),
    "two_fields": lambda entry: entry.fields.append(0),
    "no_field": without("fields"),
    "field_gone": lambda entry: entry.fields.__setitem__(0, 999),
}


def with_entries(manifest: bytes, change: Callable[[Any], None]) -> bytes:
    """A manifest whose first section lists index segments, with each of them changed."""
    (size,), (place,) = struct.unpack_from("<I", manifest, 0), struct.unpack_from("<Q", manifest, len(manifest) - 16)
    entries = table_pb2.IndexSection.FromString(manifest[4 : 4 + size])
    for entry in entries.indices:
        change(entry)
    body = entries.SerializeToString()
    last = table_pb2.Manifest.FromString(manifest[place + 4 : -16])
    last.transaction_section += len(body) - size
    head = struct.pack("<I", len(body)) + body + manifest[4 + size : place]
    tail = last.SerializeToString()
    return head + struct.pack("<I", len(tail)) + tail + struct.pack("<Q", len(head)) + manifest[-8:]


@table
def empty(path: str) -> None:
    schema = pa.schema({"id": pa.int64(), "words": pa.list_(pa.string())})
    lance.write_dataset(schema.empty_table(), path)


@table
def branched(path: str) -> None:
    """Write a branch from version 2 with separate changes. The test rewrites its base path."""
    dataset = lance.write_dataset(pa.table({"id": range(5)}), path)
    dataset = lance.write_dataset(pa.table({"id": range(5, 8)}), path, mode="append")
    branch = dataset.create_branch("side", 2)
    lance.write_dataset(pa.table({"id": [-1, -2]}), branch.uri, mode="append")
    lance.dataset(branch.uri).delete("id = 0")
    lance.write_dataset(pa.table({"id": [8]}), path, mode="append")


@table
def clone(path: str) -> None:
    """Write a shallow clone of `rowids` before its compaction and append rows. The test rewrites its base path."""
    lance.dataset("rowids.lance").shallow_clone(path, 3)
    lance.write_dataset(pa.table({"id": [-5], "x": [5]}), path, mode="append")


@table
def overlays(path: str) -> None:
    point = pa.struct([("x", pa.int32()), ("name", pa.string())])
    rows = {
        "i": pa.array(with_nulls([*range(30)]), pa.int32()),
        "s": pa.array(with_nulls([f"text {i}" for i in range(30)])),
        "p": pa.array(with_nulls([{"x": i, "name": None if i % 4 == 0 else f"p{i}"} for i in range(30)]), point),
        "l": pa.array(with_nulls([[*range(i % 4)] for i in range(30)]), pa.list_(pa.int64())),
    }
    dataset = lance.write_dataset(pa.table(rows), path, max_rows_per_file=20)
    dataset.create_scalar_index("i", "BTREE")
    points = pa.array([{"x": -1, "name": "new"}, None, {"x": None, "name": None}], point)
    add_overlay(path, 0, pa.table({"i": pa.array([100, None, 102], pa.int32()), "p": points}), [0, 3, 19])
    add_overlay(path, 0, pa.table({"s": ["", None], "l": pa.array([[], None], pa.list_(pa.int64()))}), [4, 5])
    add_overlay(path, 1, pa.table({"i": pa.array([7, 8], pa.int32()), "s": ["a", "b"]}), [[0, 9], [1, 2]])
    add_overlay(path, 0, pa.table({"i": pa.array([103, 5], pa.int32())}), [0, 7])
    lance.dataset(path).delete("s = 'text 1' OR s = 'text 28'")


@table
def overlays_written(path: str) -> None:
    """Overlays that this package writes, over deleted rows, with stable row ids and an index that is older."""
    rows = {
        "i": pa.array(with_nulls([*range(40)]), pa.int32()),
        "s": pa.array(with_nulls([f"text {i}" for i in range(40)])),
        "l": pa.array(with_nulls([[*range(i % 4)] for i in range(40)]), pa.list_(pa.int64())),
    }
    options = {"max_rows_per_file": 15, "enable_stable_row_ids": True, "storage_options": {"fsync": "false"}}
    dataset = ld.write_dataset(pa.table(rows), path, **options)
    dataset.create_scalar_index("i", "BTREE")
    dataset.delete("i % 10 = 4")
    dataset.update({"i": "i + 100", "s": "NULL"}, where="i % 4 = 1", update_mode="data_overlay")
    dataset.update({"l": "[i, NULL]", "s": "''"}, where="i > 110 OR i IS NULL", update_mode="data_overlay")
    lance.dataset(path).delete("i = 6")
    dataset.checkout_latest()
    dataset.update({"i": "NULL"}, where="i = 137 OR i = 7", update_mode="data_overlay")


@table
def mem_wal(path: str) -> None:
    key = pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
    schema = pa.schema([key, pa.field("v", pa.string())])
    dataset = lance.write_dataset(pa.table({"id": range(5), "v": [*"abcde"]}, schema), path)
    dataset.create_scalar_index("id", "BTREE")
    dataset.initialize_mem_wal(unsharded=True, maintained_indexes=["id_idx"])
    with dataset.mem_wal_writer("00000000-0000-4000-8000-000000000001", durable_write=True) as writer:
        writer.put(pa.table({"id": [1, 7], "v": ["new", "more"]}, schema))


@table
def lancedb_log(path: str) -> None:
    """A log of LanceDB: two SSTables with B-trees, and entries that are not in an SSTable."""
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("v", pa.string())])
    folder, name = Path(path).parent, Path(path).stem
    rows = lancedb.connect(folder).create_table(name, pa.table({"id": range(6), "v": [*"abcdef"]}, schema))
    rows.set_unenforced_primary_key("id")
    rows.create_index("id", config=BTree())
    rows.set_lsm_write_spec(LsmWriteSpec.unsharded())
    for ids, values in (([1, 7], "pq"), ([7, 2], "rs"), ([3, 8], "tu")):
        merge = rows.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pa.table({"id": ids, "v": [*values]}, schema))
        if 3 not in ids:
            rows.close_lsm_writers()


@table
def old_graphs(path: str) -> None:
    """HNSW indexes as pylance before 12 wrote them: upper levels with an entry point that is not counted."""
    subprocess.run([str(python_of(VERSIONS[0])), str(HERE / "old_graphs.py"), path], check=True)


@table
def old_texts(path: str) -> None:
    """Full-text indexes as pylance before 0.28 wrote them: files without partitions."""
    subprocess.run([str(python_of("0.27.2")), str(HERE / "old_texts.py"), path], check=True)


@table
def old_elements(path: str) -> None:
    """Write full-text indexes like pylance from 0.28 on in 2025: list elements as documents without their positions."""
    subprocess.run([str(python_of(VERSIONS[0])), str(HERE / "old_texts.py"), path], check=True)


def _old_vectors(version: str, path: str, kind: str) -> None:
    subprocess.run([str(python_of(version)), str(HERE / "old_vectors.py"), path, kind], check=True)


@table
def one_file(path: str) -> None:
    """IVF_PQ indexes as pylance before 0.22 wrote them: segments of one file."""
    _old_vectors("0.21.0", path, "IVF_PQ")


@table
def told_codebooks(path: str) -> None:
    """IVF_PQ indexes as pylance from 0.22 to 0.29 wrote them: codebooks in the metadata."""
    _old_vectors("0.27.2", path, "IVF_PQ")


@table
def old_bits(path: str) -> None:
    """Write IVF_RQ indexes like pylance before 4: rotated by a matrix, with factors for the query residual."""
    _old_vectors(VERSIONS[0], path, "IVF_RQ")


@table
def several_bits(path: str) -> None:
    """Write IVF_RQ indexes with 2, 5 and 9 bits for vectors rotated in two halves; the last has two segments."""
    vectors = np.random.default_rng(7).standard_normal((200, 3, 24)).astype(np.float32)
    names = {"l2": 2, "cosine": 5, "dot": 9}
    columns = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(vectors[:, place].ravel()), 24)
        for place, name in enumerate(names)
    }
    data = pa.table({"id": range(200), **columns})
    dataset = lance.write_dataset(data.slice(0, 150), path)
    for name, bits in names.items():
        dataset.create_index(name, "IVF_RQ", num_partitions=2, metric=name, num_bits=bits)
    dataset = lance.write_dataset(data.slice(150), path, mode="append")
    dataset.optimize.optimize_indices(num_indices_to_merge=0, index_names=["dot_idx"])
    dataset.delete("id % 40 = 7")


@table
def managed_blobs(path: str) -> None:
    """Blobs that the table manages: short ones in the data file, longer ones in files that data files share."""
    blob = lance.blob_field("b", inline_size_threshold=20, dedicated_size_threshold=750)
    schema = pa.schema([pa.field("i", pa.int64()), blob], {"lance.blob.managed": "true"})
    values = [None if size is None else bytes(i % 251 for i in range(size)) for size in BLOB_SIZES]
    rows = pa.table([pa.array(range(len(values))), lance.blob_array(values)], schema)
    lance.write_dataset(rows, path, data_storage_version="2.2", max_rows_per_file=3)
    lance.dataset(path).delete("i = 1")


BLOB_SIZES = (10, 0, 700, 800, None)
"""Bytes of the blobs of `managed_blobs`, which count up."""


@table
def multivectors(path: str) -> None:
    """Lists of vectors, some of them null and empty, under an index."""
    vectors = np.random.default_rng(5).standard_normal((300, 8)).astype(np.float32)
    lists = [None if i % 29 == 3 else vectors[i : i + i % 4].tolist() for i in range(290)]
    data = pa.table({"id": range(290), "v": pa.array(lists, pa.list_(pa.list_(pa.float32(), 8)))})
    dataset = lance.write_dataset(data, path, data_storage_version="2.2", max_rows_per_file=150)
    dataset.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=3)


@table
def later_indexes(path: str) -> None:
    """Indexes over a path of JSON documents, over points, and over signatures of texts."""
    rng = np.random.default_rng(7)
    words = [" ".join(rng.choice(["lake", "duck", "pond", "reed"], 6)) for _ in range(60)]
    data = pa.table(
        {
            "id": range(120),
            "j": pa.array([json.dumps({"a": {"b": i % 9}} if i % 4 else {}) for i in range(120)], pa.json_()),
            "g": [None if i % 13 == 5 else struct.pack("<BIdd", 1, 1, i % 10, i // 10) for i in range(120)],
            "t": [words[i % 60] + (" swan" if i == 70 else "") for i in range(120)],
        }
    )
    place = data.schema.get_field_index("g")
    field = pa.field(
        "g", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": "{}"}
    )
    data = data.set_column(place, field, data["g"])
    dataset = lance.write_dataset(data, path, data_storage_version="2.2", max_rows_per_file=50)
    dataset.create_scalar_index("j", IndexConfig("json", {"path": "$.a.b", "target_index_type": "btree"}), name="paths")
    dataset.create_scalar_index("g", IndexConfig("rtree", {"page_size": 16}))
    dataset.create_scalar_index("t", IndexConfig("minhashlsh", {"num_hashes": 32, "num_bands": 16, "shingle_size": 2}))
    dataset.delete("id = 45")


@table
def legacy_05(path: str) -> None:
    """Files of 0.1 as the first versions wrote them: no writer in the manifest, V1 names."""
    with_python_of("0.5.10", ["numpy<2", "pyarrow<15"], "old_files.py", path)


@table
def legacy_10(path: str) -> None:
    """Files of 0.1 as the last version that made them by default wrote them: several a fragment."""
    with_python_of("0.10.18", ["numpy<2", "pyarrow<18"], "old_files.py", path)


def with_python_of(version: str, needs: list[str], script: str, path: str) -> None:
    """Run a script with a pylance that is older than all in `tests/versions`, in a separate environment."""
    with tempfile.TemporaryDirectory() as home:
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        python = f"{home}/bin/python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"pylance=={version}", *needs], check=True)
        subprocess.run([python, str(HERE / script), path], check=True)


def hidden_columns(name: str, dataset: Any) -> list[str]:
    return HIDDEN + (LINEAGE if name in ("rowids", "overlays_written") else [])


def store(path: Path, data: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink:
        options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 19))
        with pa.ipc.new_file(sink, data.schema.remove_metadata(), options=options) as writer:
            writer.write_table(data.combine_chunks())


def utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def expect(name: str, folder: Path) -> None:
    """Store what pylance reads from every version, tag and branch of a table."""
    path = f"{name}.lance"
    dataset = lance.dataset(path)
    facts: dict[str, Any] = {"writer": WRITER, "latest": dataset.version, "versions": {}, "tags": {}, "branches": {}}
    for entry in dataset.versions():
        version = entry["version"]
        at = lance.dataset(path, version=version)
        facts["versions"][str(version)] = {"rows": at.count_rows(), "timestamp": utc(entry["timestamp"])}
        if name != "deletions":
            store(folder / f"{version}.arrow", at.to_table())
    columns = [*dataset.schema.names, *hidden_columns(name, dataset)]
    if name in ("rowids", "deletions", "clone", "evolved", "overlays_written"):
        store(folder / f"{dataset.version}.hidden.arrow", dataset.to_table(columns=columns))
    facts["tags"] = {tag: entry["version"] for tag, entry in dataset.tags.list().items()}
    for branch in dataset.branches.list():
        at = dataset.checkout_version((branch, None))
        facts["branches"][branch] = {"version": at.version, "rows": at.count_rows()}
        store(folder / f"{branch}.arrow", at.to_table())
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in `folder`, so that no manifest holds a path of this machine."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def fresh(name: str) -> Path:
    shutil.rmtree(HERE / name, ignore_errors=True)
    (HERE / name).mkdir(parents=True)
    return HERE / name


def write_tpch() -> None:
    data = tpch(TPCH_SCALE, TPCH_SEED)
    connection = duckdb.connect()
    with inside(fresh("tpch/tables")):
        for name, rows in data.items():
            connection.register(name, rows)
            lance.write_dataset(rows, f"{name}.lance", max_rows_per_file=10_000)
    answers = fresh("tpch/answers")
    for query in sorted((HERE / "tpch" / "queries").glob("*.sql")):
        answer = connection.sql(query.read_text(encoding="utf-8")).to_arrow_table()
        store(answers / f"{query.stem}.arrow", answer)


def main(names: Sequence[str] = ()) -> None:
    """Write all tables, or only the named ones."""
    if lance.__version__ != WRITER:
        sys.exit(f"the golden tables are written by pylance {WRITER}, found {lance.__version__}")
    for name in names or ("tables", "expected"):
        for path in (HERE / "tables" / f"{name}.lance", HERE / "expected" / name) if names else (HERE / name,):
            shutil.rmtree(path, ignore_errors=True)
    (HERE / "tables").mkdir(exist_ok=True)
    with inside(HERE / "tables"):
        for name in names or TABLES:
            TABLES[name](f"{name}.lance")
            (HERE / "expected" / name).mkdir(parents=True)
            expect(name, HERE / "expected" / name)
            print(name)
    if not names:
        write_tpch()


if __name__ == "__main__":
    main(sys.argv[1:])
