"""The workload of `warm_up`: small tables that call each kernel with its usual types."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.dataset import LanceDataset
from lance_duck.duck import connect
from lance_duck.index.vector.graph.hnsw import EF_CONSTRUCTION, MAX_LEVEL, M
from lance_duck.index.vector.graph.join import join_graph
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.json.typed import typed_text
from lance_duck.kernels.numbers.bitpacking import unpack_fixed
from lance_duck.kernels.numbers.flat import gather_low_words, join_low_words
from lance_duck.kernels.numbers.narrow import low_words
from lance_duck.kernels.texts.dictionary_decode import are_bytes, number_bytes
from lance_duck.kernels.vectors.rotate import rotate_by_matrix
from lance_duck.query import (
    BoostQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
    PrefixQuery,
)
from lance_duck.scan.predicate.kernels import and_lookup
from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.wire.blob_type import blob_array
from lance_duck.write_dataset import write_dataset

ROWS: Final = 5_000
"""Row count of most tables. Each column has several chunks."""
WIDE_ROWS: Final = 300_000
"""Row count of the table of wide numbers. Each column has several pages."""
STATEMENTS: Final = (
    "SELECT letter, sum(amount), max(key) FROM wide WHERE day > DATE '1995-03-15' GROUP BY letter",
    "SELECT word, count(*), sum(i64) FROM indexed WHERE f64 > 0.5 GROUP BY word",
)
VERSIONS: Final = ("2.2", "2.1", "2.0")
_SEED: Final = 7


def run_workload(folder: str) -> None:
    """Compile all usual kernels: write, read, change, index and search small tables in a folder."""
    for version in VERSIONS:
        _use(write_dataset(_plain(), f"{folder}/plain-{version}.lance", data_storage_version=version))
    _use(write_dataset(_nested(), f"{folder}/nested.lance"))
    write_dataset(_compressed(), f"{folder}/compressed.lance").to_table()
    _use(write_dataset(_wide(), f"{folder}/wide.lance"))
    _use_blobs(f"{folder}/blobs.lance")
    _change(write_dataset(_plain(), f"{folder}/changed.lance"))
    _index(write_dataset(_plain(), f"{folder}/indexed.lance"))
    _index_places(f"{folder}/places.lance")
    _analyse()
    _read_foreign_layouts()
    _search(write_dataset(_vectors(), f"{folder}/vectors.lance"))
    _search_texts(write_dataset(_texts(), f"{folder}/texts.lance"))
    with connect(folder) as connection:
        for (table,) in connection.sql("SHOW TABLES").fetchall():
            connection.table(f'"{table}"').aggregate("count(COLUMNS(*))").fetchall()
        for statement in STATEMENTS:
            connection.sql(statement).fetchall()


def _plain() -> pa.Table:
    """Return columns of plain types: values that pack well, repeated values, values that do neither, and nulls."""
    random = np.random.default_rng(_SEED)
    row = np.arange(ROWS)
    columns: dict[str, pa.Array] = {"id": pa.array(row), "flag": pa.array(random.random(ROWS) < 0.5)}
    for bits in (8, 16, 32, 64):
        for kind in ("int", "uint"):
            name = f"{kind[0]}{bits}"
            columns[name] = pa.array(random.integers(0, 100, ROWS)).cast(f"{kind}{bits}")
            columns[f"{name}_runs"] = pa.array(row // 100 % 100).cast(f"{kind}{bits}")
    for bits in (32, 64):
        columns[f"f{bits}"] = pa.array(random.random(ROWS).astype(f"float{bits}"))
    columns["cents"] = pa.array(np.round(random.random(ROWS) * 100, 2))
    columns["f16"] = pa.array(random.random(ROWS).astype(np.float16))
    columns["time"] = pa.array(row * 1_000_003, pa.timestamp("us"))
    columns["day"] = pa.array(row // 3, pa.int32()).cast(pa.date32())
    columns["price"] = pa.array([Decimal(int(i) % 977) for i in row], pa.decimal128(12, 2))
    texts = {
        "word": [f"word {i % 40}" for i in row],
        "name": [f"name {i * 7919 % ROWS} of many, number {i}" for i in row],
        "text": [f"{i} " * 200 if i < 50 else "short" for i in row],
    }
    for name, values in texts.items():
        for type_ in (pa.string(), pa.large_string(), pa.binary()):
            columns[f"{name}_{type_}" if type_ != pa.string() else name] = pa.array(values).cast(type_)
    columns["code"] = pa.array([bytes([i % 251] * 6) for i in row], pa.binary(6))
    hole = pa.array(row % 13 == 0)
    nullable = {f"{name}_null": _with_nulls(column, hole) for name, column in columns.items() if name != "id"}
    return pa.table({**columns, **nullable, "nothing": pa.nulls(ROWS, pa.int64())})


def _with_nulls(column: pa.Array, hole: pa.Array) -> pa.Array:
    return pc.if_else(hole, pa.scalar(None, column.type), column)


def _nested() -> pa.Table:
    row = np.arange(ROWS)
    lists: list[Any] = [None if i % 11 == 0 else list(range(i % 5)) for i in row]
    words = [[f"w{i % 7}"] * (i % 3) for i in row]
    json = [f'{{"a": {i}, "b": [1.5, "x\\n", null, true], "c": {{"d": "e"}}}}' for i in row]
    return pa.table(
        {
            "lists": pa.array(lists, pa.list_(pa.int32())),
            "long_lists": pa.array(lists, pa.large_list(pa.int64())),
            "holes": pa.array([[None, i] if i % 4 else None for i in row.tolist()], pa.list_(pa.int32())),
            "words": pa.array(words),
            "deep": pa.array([[part] for part in words]),
            "pair": pa.array([{"a": int(i), "b": f"b{i % 5}"} if i % 9 else None for i in row]),
            "pairs": pa.array([[{"a": int(i), "b": "b"}] * (i % 3) for i in row]),
            "map": pa.array([[("k", int(i))] for i in row], pa.map_(pa.string(), pa.int64())),
            "json": pa.array(json, pa.json_()),
            "vectors": pa.array([[[i % 7] * 64] * (i % 3) for i in row], pa.list_(pa.list_(pa.float32(), 64))),
        }
    )


def _compressed() -> pa.Table:
    """Return floats whose bytes are split into streams before compression."""
    settings = {"lance-encoding:compression": "lz4", "lance-encoding:bss": "on"}
    fields = [pa.field(str(type_), type_, metadata=settings) for type_ in (pa.float32(), pa.float64())]
    numbers = np.random.default_rng(_SEED).random(ROWS)
    return pa.table([pa.array(numbers).cast(field.type) for field in fields], pa.schema(fields))


def _wide() -> pa.Table:
    """Return long columns: numbers that use most of their bits, keys, amounts, letters."""
    random = np.random.default_rng(_SEED)
    columns = {f"u{bits}": random.integers(0, 1 << bits, WIDE_ROWS, f"uint{bits}") for bits in (8, 16, 32)}
    columns["u63"] = random.integers(0, 1 << 63, WIDE_ROWS, np.uint64)
    columns["u40"] = random.integers(0, 1 << 40, WIDE_ROWS, np.uint64)
    columns["i64"] = random.integers(-(1 << 40), 1 << 40, WIDE_ROWS)
    columns["key"] = random.permutation(WIDE_ROWS)
    amounts = pa.array(random.integers(90_000, 10_000_000, WIDE_ROWS)).cast(pa.decimal128(21, 2))
    letters = pa.array(np.array(list("ANR"))[random.integers(0, 3, WIDE_ROWS)])
    days = pa.array(random.integers(8_000, 10_500, WIDE_ROWS), pa.int32()).cast(pa.date32())
    return pa.table({"id": np.arange(WIDE_ROWS), **columns, "amount": amounts, "letter": letters, "day": days})


def _vectors() -> pa.Table:
    random = np.random.default_rng(_SEED)
    numbers = random.random((ROWS, 16))
    types: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    columns = {name: _vector(numbers.astype(type_)) for name, type_ in types.items()}
    columns["bits"] = _vector(random.integers(0, 256, (ROWS, 16), np.uint8))
    return pa.table({"id": pa.array(np.arange(ROWS)), **columns})


def _vector(numbers: Any) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(numbers.reshape(-1), numbers.shape[1])


def _use(ds: LanceDataset) -> None:
    """Read a table completely, by row positions, and by filters."""
    ds.to_table()
    ds.take([5, ROWS - 7, 300])
    ds.take(list(range(0, ROWS, 3)))
    ds.to_table(offset=10, limit=20)
    for condition in _conditions(ds):
        ds.to_table(columns=[ds.schema.names[0]], filter=condition)


def _conditions(ds: LanceDataset) -> Iterator[str]:
    for field in ds.schema:
        name = field.name
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
            yield f"{name} > 3 AND {name} < 60"
            yield f"{name} != 7"
            yield f"{name} IN (1, 5, 9)"
        elif pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            yield f"{name} = 'word 7'"
            yield f"{name} >= 'name 3' AND {name} IS NOT NULL"
            yield f"{name} IN ('word 1', 'word 2')"
            yield f"{name} IN ({', '.join(repr(f'word {i}') for i in range(20))})"
        elif pa.types.is_decimal(field.type):
            yield f"{name} > 3"


def _use_blobs(uri: str) -> None:
    values = [None if i % 5 == 0 else bytes([i % 251]) * (i * 300) for i in range(40)]
    ds = write_dataset(pa.table({"blob": blob_array(values)}), uri)
    for blob in ds.take_blobs("blob", indices=[1, 2, 39]):
        if blob is not None:
            blob.read()
    ds.to_table(blob_handling="all_binary")


def _change(ds: LanceDataset) -> None:
    """Merge, update, delete, compact."""
    changes = ds.take(list(range(100, 200)))
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(changes)
    ds.merge_insert("name").when_not_matched_insert_all().execute(changes)
    ds.update({"f64": "f64 * 2"}, where="word = 'word 3'")
    ds.delete("id % 3 = 1")
    ds.to_table()
    ds.take([1, 500, 900])
    ds.add_columns({"twice": "id * 2"})
    ds.optimize.compact_files()
    ds.to_table()


def _read_foreign_layouts() -> None:
    """Call the kernels for layouts that only other writers produce, with empty arrays."""
    numbers, data = np.empty(0, np.int64), np.empty(0, np.uint8)
    words: tuple[Any, ...] = (np.uint8, np.uint16, np.uint32, np.uint64)
    for word in words:
        out = np.empty(0, word)
        unpack_fixed(readonly(data), numbers, numbers, numbers, 1, out, out)
    join_low_words(readonly(data), numbers, numbers, 2, numbers)
    gather_low_words(readonly(data), numbers, 2, numbers)
    for narrow in (np.empty(0, np.int32), numbers):
        low_words(readonly(numbers), 2, narrow, data)
    typed_text(readonly(data), numbers, np.empty(0, np.float64), data, np.zeros(1, np.int64))
    vectors = np.empty((0, 8), np.float32)
    rotate_by_matrix(readonly(vectors), readonly(np.eye(8, dtype=np.float32)), vectors)
    and_lookup(readonly(np.empty(0, np.int32)), np.int64(0), readonly(data), data)
    are_bytes(readonly(np.zeros(1, np.int32)))
    number_bytes(readonly(data), 0, np.empty(0, np.uint32), numbers, np.empty(0, np.int32))


def _analyse() -> None:
    """Tokenize texts into more words than the initial hash table holds, and into n-grams."""
    texts = pa.array([f"word{i}" for i in range(ROWS)])
    for base in ("simple", "ngram"):
        Analyser(AnalyserParameters(base_tokenizer=base)).analyse(texts)


def _index(ds: LanceDataset) -> None:
    """Build, search and optimize scalar indexes of each kind."""
    for column, kind in {
        **dict.fromkeys(("id", "f64", "name", "time"), "BTREE"),
        **dict.fromkeys(("word", "i32"), "BITMAP"),
        **dict.fromkeys(("i64", "day"), "ZONEMAP"),
        **dict.fromkeys(("u64", "name_null"), "BLOOMFILTER"),
        "text": "NGRAM",
    }.items():
        ds.create_scalar_index(column, kind)
    for condition in (
        "id = 7",
        "id IN (1, 5)",
        "name = 'x'",
        "word = 'word 3'",
        "i32 = 5",
        "i64 = 3",
        "u64 = 3",
        "contains(text, 'hort')",
    ):
        ds.to_table(filter=condition)
    ds.create_scalar_index("word", "INVERTED", "texts", with_position=True)
    ds.insert(ds.take([1, 2, 3]))
    ds.delete("id = 4")
    ds.optimize.optimize_indices()
    ds.to_table(filter="id = 7 OR f64 < 0.01")


def _index_places(path: str) -> None:
    """Build and search an R-tree over points in WKB."""
    point = struct.pack("<BIdd", 1, 1, 2.0, 3.0)
    for type_ in (pa.binary(), pa.large_binary()):
        field = pa.field("g", type_, metadata={"ARROW:extension:name": "geoarrow.wkb"})
        rows = pa.table([pa.array([point, None] * 50, type_)], schema=pa.schema([field]))
        write_dataset(rows, path, mode="overwrite").create_scalar_index("g", "RTREE")


def _search(ds: LanceDataset) -> None:
    """Search with and without an index, with each metric."""
    for column, metric in [(c, m) for c in ("f16", "f32", "f64") for m in ("l2", "cosine", "dot")]:
        ds.to_table(nearest={"column": column, "q": [0.5] * 16, "k": 5, "metric": metric})
        ds.to_table(nearest={"column": column, "q": [0.5] * 16, "k": 5, "metric": metric}, filter="id < 50")
    ds.to_table(nearest={"column": "bits", "q": np.zeros(16, np.uint8), "k": 5, "metric": "hamming"})
    ds.create_index("f32", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    ds.create_index("f64", "IVF_HNSW_SQ", num_partitions=2)
    join_graph(np.random.default_rng(_SEED).random((1000, 16), np.float32), M, EF_CONSTRUCTION, MAX_LEVEL)
    ds.create_index("f16", "IVF_FLAT", num_partitions=2)
    ds.create_index("bits", "IVF_FLAT", num_partitions=2, metric="hamming")
    for column in ("f16", "f32", "f64"):
        ds.to_table(nearest={"column": column, "q": [0.5] * 16, "k": 5})
        ds.to_table(nearest={"column": column, "q": [0.5] * 16, "k": 5, "refine_factor": 2}, filter="id > 100")
    for kind in ("IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ"):
        ds.create_index("f32", kind, num_partitions=2, replace=True)
        ds.to_table(nearest={"column": "f32", "q": [0.5] * 16, "k": 5})
        ds.to_table(nearest={"column": "f32", "q": [0.5] * 16, "k": 5}, filter="id > 100")


def _texts() -> pa.Table:
    """Return texts of rare, common and ubiquitous words, as strings, lists of strings and JSON."""
    texts = [f"every word{i % 3} name{i % 40} of number{i} " + "again " * (i % 5) for i in range(ROWS)]
    json = [f'{{"title": "{text}", "page": {i}}}' for i, text in enumerate(texts)]
    return pa.table(
        {"id": range(ROWS), "text": texts, "list": [text.split() for text in texts], "json": pa.array(json, pa.json_())}
    )


def _search_texts(ds: LanceDataset) -> None:
    """Search text without an index, then with each index format, with filters, deletions and new rows."""
    queries = list(_text_queries("text"))
    for query in queries:
        ds.search(query, k=3)
    for version in (1, 2, 3):
        ds.create_scalar_index("text", "INVERTED", "texts", with_position=True, format_version=version, replace=True)
        for query in queries:
            ds.search(query, k=3)
            ds.search(query, k=3, filter="id > 2000")
            ds.to_table(full_text_query=query, columns=["id"])
            ds.scanner(full_text_query=query).count_rows()
    for column, words in {"list": "word1 name7", "json": "title,str,word1"}.items():
        ds.create_scalar_index(column, "INVERTED", f"{column}s", with_position=True)
        ds.to_table(full_text_query=MatchQuery(words, column), columns=["id"], limit=5)
    ds.insert(ds.take([1, 2, 3]))
    ds.delete("id % 7 = 1")
    for query in queries:
        ds.search(query, k=3)
    ds.optimize.optimize_indices()
    ds.search(MatchQuery("name7 number5", "text"), k=3)
    ds.near_duplicates("text")


def _text_queries(column: str) -> Iterator[FullTextQuery]:
    yield MatchQuery("number77", column)
    yield MatchQuery("every", column)
    yield MatchQuery("every word1", column)
    yield MatchQuery("every word1 name7 again number5", column)
    yield MatchQuery("every word1", column, operator=FullTextOperator.AND)
    yield MatchQuery("every word1 name7 again", column, operator=FullTextOperator.AND)
    yield MatchQuery("nmae7 wrod1", column, fuzziness=2)
    yield PrefixQuery("numb", column)
    yield PhraseQuery("word1 name7", column)
    yield PhraseQuery("every name7", column, slop=2)
    yield BoostQuery(MatchQuery("word1", column), MatchQuery("again", column))
    yield MatchQuery("word1", column) & MatchQuery("name7", column)
    yield MatchQuery("word1", column) | MatchQuery("name7", column)
    yield MultiMatchQuery("word1 name7", [column])
