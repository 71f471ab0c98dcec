"""LanceDB's embedding functions: its metadata is read here, and the metadata written here is read by LanceDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lancedb.embeddings import EmbeddingFunctionConfig, TextEmbeddingFunction, get_registry

import lance_duck as ld
from lance_duck import embedders

SCHEMA = pa.schema([("text", pa.string()), ("vector", pa.list_(pa.float32(), 2))])


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(embedders, "_REGISTERED", {})
    registry = get_registry()

    @registry.register("lengths")
    class Lengths(TextEmbeddingFunction):
        scale: float = 1.0

        def ndims(self) -> int:
            return 2

        def generate_embeddings(self, texts: Any) -> list[list[float]]:
            return [[len(text) * self.scale, 1.0] for text in texts]

    yield Lengths
    del registry._functions["lengths"]


def test_both_libraries_fill_and_search_the_same_table(tmp_path: Path, model: Any) -> None:
    config = EmbeddingFunctionConfig(vector_column="vector", source_column="text", function=model.create(scale=0.5))
    made = lancedb.connect(tmp_path).create_table("t", schema=SCHEMA, embedding_functions=[config])
    made.add([{"text": "aa"}, {"text": "cccc"}])
    ds = ld.dataset(tmp_path / "t.lance")
    ld.register_embedder("lengths", model)
    ds.insert({"text": ["eeeeee"]})
    assert ds.to_table()["vector"].to_pylist() == [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    made.checkout_latest()
    for text in ("x", "xxxxxx"):
        expected = made.search(text).limit(2).to_list()
        assert ds.search(text, 2).to_pylist() == [
            {name: row[name] for name in ("text", "vector", "_distance")} for row in expected
        ]


def test_lancedb_reads_a_declaration_of_ours(tmp_path: Path, model: Any) -> None:
    config = EmbeddingFunctionConfig(vector_column="vector", source_column="text", function=model.create(scale=0.5))
    lancedb.connect(tmp_path).create_table("a", schema=SCHEMA, embedding_functions=[config])
    ds = ld.write_dataset(pa.table({"text": ["aa"], "vector": [[1.0, 1.0]]}, SCHEMA), tmp_path / "b.lance")
    ds.set_embedding_function("vector", "text", "lengths", {"scale": 0.5})
    theirs = ld.dataset(tmp_path / "a.lance").schema.metadata[b"embedding_functions"]
    assert ds.schema.metadata[b"embedding_functions"] == theirs
    made = lancedb.connect(tmp_path).open_table("b")
    made.add([{"text": "cccc"}])
    assert made.search("cccc").limit(1).to_list()[0]["vector"] == [2.0, 1.0]
