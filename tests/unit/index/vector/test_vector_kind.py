from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from unit.index.vector.written import Written, made

from lance_duck.errors import UnsupportedError
from lance_duck.index.kind import Details
from lance_duck.index.query import Null
from lance_duck.index.registry import kind_named, kind_of, name_of
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.search.hamming import HammingIndex
from lance_duck.index.vector.search.ivf import IvfIndex
from lance_duck.wire.pb import index_pb2

URLS = ["/lance.index.pb.VectorIndexDetails", "/lance.table.VectorIndexDetails", "x/lance.table.vectorindexdetails"]


@pytest.mark.parametrize("url", URLS)
def test_the_kind_is_recognised_by_its_details(url: str) -> None:
    assert kind_of(url) is VECTOR


def test_the_vector_kind_is_not_a_scalar_index() -> None:
    assert not VECTOR.answers(Null(), pa.list_(pa.float32(), 4))
    with pytest.raises(UnsupportedError, match="unknown index kind"):
        kind_named("Vector")


@pytest.mark.parametrize(
    ("type_", "supported"),
    [
        (pa.list_(pa.float16(), 4), True),
        (pa.list_(pa.float32(), 1), True),
        (pa.list_(pa.float64(), 4), True),
        (pa.list_(pa.binary(2), 4), True),
        (pa.list_(pa.uint8(), 4), True),
        (pa.list_(pa.int8(), 4), False),
        (pa.list_(pa.float32()), False),
        (pa.float32(), False),
    ],
)
def test_only_vector_columns_can_be_indexed(type_: pa.DataType, supported: bool) -> None:
    assert VECTOR.supports(type_) == supported


def test_details_name_the_index_type() -> None:
    details = index_pb2.VectorIndexDetails()
    assert name_of(URLS[0], details.SerializeToString()) is None
    assert name_of(URLS[0], b"\xff") is None
    details.pq.num_bits = 8
    assert name_of(URLS[0], details.SerializeToString()) == "IVF_PQ"
    details.flat.SetInParent()
    details.hnsw_index_config.max_connections = 20
    assert name_of(URLS[0], details.SerializeToString()) == "IVF_HNSW_FLAT"
    assert name_of("/lance.table.BTreeIndexDetails", b"") == "BTree"
    assert name_of("/lance.table.OtherIndexDetails", b"") is None


def test_a_segment_is_opened_for_vectors_of_its_length(tmp_path: Path) -> None:
    files = made("SQ", rows=100).written.write(tmp_path)
    assert isinstance(VECTOR.open(files, pa.list_(pa.float32(), 16), Details(1)), IvfIndex)
    with pytest.raises(UnsupportedError, match="dimension"):
        VECTOR.open(files, pa.list_(pa.float32(), 8), Details(1))


def test_a_segment_of_bits_is_opened(tmp_path: Path) -> None:
    codes = np.arange(40, dtype=np.uint8).reshape(10, 4)
    files = Written(codes, [10], codes[:1], "FLAT", "hamming", {"dim": 4}).write(tmp_path)
    assert isinstance(VECTOR.open(files, pa.list_(pa.uint8(), 4), Details(1)), HammingIndex)
