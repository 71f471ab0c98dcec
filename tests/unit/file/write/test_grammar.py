"""Pages of each file version use only encodings that every reader of the version supports, in data and index files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import Message
from versions import data

import lance_duck as ld
from lance_duck.encoding.write.grammar import ARRAYS_20, COMPRESSIONS_20, GRAMMARS, Grammar
from lance_duck.file.reader import LanceFile, open_file
from lance_duck.store import open_store, run
from lance_duck.wire.pb import encodings20_pb2, encodings21_pb2

LISTS = [encodings21_pb2.RepDefLayer.Value(f"REPDEF_{kind}_LIST") for kind in ("ALL_VALID", "NULLABLE", "EMPTYABLE")]
LISTS.append(encodings21_pb2.REPDEF_NULL_AND_EMPTY_LIST)
PREFIX = "lance-encoding:"
HINTS: dict[str, tuple[pa.Array, dict[str, str]]] = {
    "text_zstd": (pa.array([f"text {i}" for i in range(5000)]), {"compression": "zstd"}),
    "int_lz4": (pa.array(np.arange(5000) ** 2), {"compression": "lz4"}),
    "float_bss": (pa.array(np.sqrt(np.arange(5000))), {"compression": "zstd", "bss": "on"}),
    "text_fsst": (pa.array([f"text {i}" * 3 for i in range(5000)]), {"compression": "fsst"}),
    "runs": (pa.array(np.arange(5000) // 3), {"rle-threshold": "1.0"}),
    "bool_zipped": (pa.array(np.arange(5000) % 3 == 0), {"structural-encoding": "fullzip"}),
    "text_zipped": (pa.array([f"text {i}" for i in range(5000)]), {"structural-encoding": "fullzip"}),
    "dictionary_zstd": (pa.array([f"{i % 90}" * 40 for i in range(5000)]), {"dict-values-compression": "zstd"}),
}


def opened(path: Path) -> LanceFile:
    store = open_store(str(path.parent))
    return run(open_file(store.open(path.name)))


def pages(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield every page of all data and index files below a folder: its location and description."""
    files = [path for path in folder.rglob("*") if path.suffix in (".lance", ".idx") and path.is_file()]
    assert files
    for path in files:
        file = opened(path)
        for i in range(file.num_columns):
            for page in file.column(i).pages:
                kind = encodings20_pb2.ArrayEncoding if file.version == (2, 0) else encodings21_pb2.PageLayout
                yield f"{path.name}, column {i}", kind.FromString(page.encoding.value)


def parts(message: Any, name: str) -> Iterator[Any]:
    """The message, and all messages of a kind inside of it."""
    if message.DESCRIPTOR.name == name:
        yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in [value] if isinstance(value, Message) else value:
                yield from parts(item, name)


def names(message: Any) -> set[str]:
    """Return the encodings in a compression."""
    return {part.WhichOneof("compression") for part in parts(message, "CompressiveEncoding")} - {None}


def violations(page: Any, grammar: Grammar) -> set[str]:
    """Return the parts of a page that its version does not allow."""
    layout = getattr(page, page.WhichOneof("layout"))
    found: set[str] = set()
    if page.WhichOneof("layout") == "mini_block_layout":
        found |= names(layout.value_compression) - grammar.chunk_values
        found |= outer(layout) - grammar.levels
        found |= {f"dictionary: {name}" for name in names(layout.dictionary) - grammar.dictionary}
        if layout.has_large_chunk != grammar.has_large_chunks:
            found.add("chunk words")
    elif page.WhichOneof("layout") == "full_zip_layout":
        found |= names(layout.value_compression) - grammar.single_values
    elif page.WhichOneof("layout") == "constant_layout":
        if layout.HasField("inline_value") and not grammar.has_constants:
            found.add("constant")
        found |= outer(layout) - grammar.constant_levels
    if page.WhichOneof("layout") != "blob_layout":
        found |= dense_nulls(list(layout.layers), grammar)
    return found


def outer(layout: Any) -> set[str]:
    """Encodings of the levels of a page."""
    return {x.WhichOneof("compression") for x in (layout.rep_compression, layout.def_compression)} - {None}


def dense_nulls(layers: list[int], grammar: Grammar) -> set[str]:
    """Null items in lists that are never null and never empty, where readers lose their rows."""
    first = next((i for i, layer in enumerate(layers) if layer in LISTS), None)
    if grammar.has_dense_nulls or first is None:
        return set()
    has_nulls = encodings21_pb2.REPDEF_NULLABLE_ITEM in layers[:first]
    return {"dense nulls"} if has_nulls and layers[first] == encodings21_pb2.REPDEF_ALL_VALID_LIST else set()


@pytest.mark.parametrize("version", GRAMMARS)
def test_pages_use_only_encodings_of_their_version(version: str, tmp_path: Path) -> None:
    table = data.kinds(7_000, 0, version)
    ld.write_dataset(table, str(tmp_path / "kinds.lance"), data_storage_version=version)
    fields = [
        pa.field(name, array.type, metadata={PREFIX + key: value for key, value in hints.items()})
        for name, (array, hints) in HINTS.items()
    ]
    hinted = pa.table([array for array, _ in HINTS.values()], schema=pa.schema(fields))
    ld.write_dataset(hinted, str(tmp_path / "hinted.lance"), data_storage_version=version)
    seen = 0
    for where, page in pages(tmp_path):
        assert not violations(page, GRAMMARS[version]), where
        seen += 1
    assert seen > 100


@pytest.mark.parametrize("version", GRAMMARS)
def test_index_pages_use_only_encodings_of_their_version(version: str, tmp_path: Path) -> None:
    dataset = ld.write_dataset(data.indexed(0, 3_000), str(tmp_path / "t.lance"), data_storage_version=version)
    for column, kind in data.SCALAR_KINDS.items():
        dataset.create_scalar_index(column, kind)
    dataset.create_index("ivf_hnsw_sq", "IVF_HNSW_SQ", num_partitions=2)
    dataset.create_index("ivf_pq", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    found = list(pages(tmp_path / "t.lance" / "_indices"))
    assert len(found) > 12
    for where, page in found:
        assert not violations(page, GRAMMARS[version]), where


def test_pages_of_2_0_use_only_encodings_of_2_0(tmp_path: Path) -> None:
    dataset = ld.write_dataset(data.kinds(7_000, 0, "2.0"), str(tmp_path / "t.lance"), data_storage_version="2.0")
    dataset.create_scalar_index("id", "BTREE")
    for where, page in pages(tmp_path):
        encodings = {part.WhichOneof("array_encoding") for part in parts(page, "ArrayEncoding")}
        schemes = {part.scheme for part in parts(page, "Compression")}
        assert encodings <= ARRAYS_20, where
        assert schemes <= COMPRESSIONS_20, where


@pytest.mark.parametrize("version", GRAMMARS)
def test_lists_of_null_items_are_not_constant_pages(version: str, tmp_path: Path) -> None:
    offsets = pa.array(np.arange(0, 3001, 3), pa.int32())
    words = pa.DictionaryArray.from_arrays(pa.nulls(3000, pa.int32()), pa.array([], pa.string()))
    items = {"int": pa.nulls(3000, pa.int64()), "text": pa.nulls(3000, pa.string()), "dictionary": words}
    table = pa.table({name: pa.ListArray.from_arrays(offsets, array) for name, array in items.items()})
    dataset = ld.write_dataset(table, str(tmp_path / "t.lance"), data_storage_version=version)
    assert [page.WhichOneof("layout") for _, page in pages(tmp_path)] == ["mini_block_layout"] * 3
    for name in table.column_names:
        assert dataset.to_table([name])[name].to_pylist() == [[None] * 3] * 1000


@pytest.mark.parametrize("version", GRAMMARS)
def test_booleans_are_never_zipped(version: str, tmp_path: Path) -> None:
    field = pa.field("b", pa.bool_(), metadata={PREFIX + "structural-encoding": "fullzip"})
    table = pa.table([pa.array([True, False, None] * 100)], schema=pa.schema([field]))
    dataset = ld.write_dataset(table, str(tmp_path / "t.lance"), data_storage_version=version)
    ((_, page),) = pages(tmp_path)
    assert page.WhichOneof("layout") == "mini_block_layout"
    assert dataset.to_table()["b"].to_pylist() == [True, False, None] * 100
