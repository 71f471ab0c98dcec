"""Models that segments of one vector index have in common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import (
    CorruptError,
    IndexNotFoundError,
    InvalidInputError,
    NotIndexableError,
    UnknownColumnError,
    UnsupportedError,
)
from lance_duck.indices import IndicesBuilder, IvfModel, PqModel

DIM = 8
VECTORS = np.random.default_rng(3).normal(size=(600, DIM)).astype(np.float32)


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    column = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), DIM)
    return ld.write_dataset(pa.table({"v": column}), tmp_path / "t.lance", max_rows_per_file=200)


def test_segments_built_with_one_model_form_one_index(table: ld.LanceDataset, tmp_path: Path) -> None:
    builder = IndicesBuilder(table, "v")
    ivf = builder.train_ivf(4)
    pq = builder.train_pq(ivf, 2, num_bits=4)
    assert (ivf.num_partitions, ivf.distance_type, ivf.centroids.type) == (4, "l2", pa.list_(pa.float32(), DIM))
    assert (pq.num_subvectors, pq.num_bits, pq.dimension, len(pq.codebook)) == (2, 4, DIM, 16)
    ivf.save(tmp_path / "ivf.lance")
    pq.save(tmp_path / "pq.lance")
    stored, codes = IvfModel.load(tmp_path / "ivf.lance"), PqModel.load(str(tmp_path / "pq.lance"))
    assert (stored.centroids, stored.distance_type) == (ivf.centroids, "l2")
    assert (codes.codebook, codes.num_subvectors, codes.num_bits) == (pq.codebook, 2, 4)
    model = {"ivf_centroids": stored.centroids, "pq_codebook": codes.codebook, "num_sub_vectors": 2, "num_bits": 4}
    segments = [table.create_index_uncommitted("v", "IVF_PQ", fragment_ids=[i], **model) for i in range(3)]
    table.commit_existing_index_segments("v_idx", "v", [table.merge_existing_index_segments(segments)])
    nearest = {"column": "v", "q": VECTORS[321], "k": 1, "nprobes": 4, "refine_factor": 20}
    assert table.to_table([], nearest=nearest, with_row_address=True)["_rowaddr"].to_pylist() == [(1 << 32) + 121]


def test_row_and_column_codebook_layouts_are_equivalent(table: ld.LanceDataset) -> None:
    builder = IndicesBuilder(table, "v")
    model = builder.prepare_global_ivf_pq(4, 2, num_bits=4, fragment_ids=[0, 2])
    parts = model["pq_codebook"].flatten().to_numpy().reshape(2, 16, DIM // 2)
    found = []
    for codebook in (model["pq_codebook"], parts):
        table.create_index(
            "v",
            "IVF_PQ",
            replace=True,
            num_sub_vectors=2,
            num_bits=4,
            ivf_centroids=model["ivf_centroids"],
            pq_codebook=codebook,
        )
        nearest = {"column": "v", "q": VECTORS[5], "k": 5, "nprobes": 4}
        found.append(table.to_table(["_distance"], nearest=nearest))
    assert found[0] == found[1]


def test_the_default_partition_count_is_the_square_root_of_the_rows(table: ld.LanceDataset) -> None:
    assert IndicesBuilder(table, "v").train_ivf(fragment_ids=[1], distance_type="cosine").num_partitions == 14


def test_invalid_arguments_are_rejected(table: ld.LanceDataset, tmp_path: Path) -> None:
    builder = IndicesBuilder(table, "v")
    ivf = builder.train_ivf(2)
    with pytest.raises(InvalidInputError, match=r"fragment_ids: expected fragments of the table, found \[7\]"):
        builder.train_ivf(2, fragment_ids=[0, 7])
    with pytest.raises(InvalidInputError, match=r"num_partitions: .* found 0"):
        builder.train_ivf(0)
    with pytest.raises(InvalidInputError, match="num_sub_vectors"):
        builder.train_pq(ivf, 3)
    with pytest.raises(InvalidInputError, match="the column does not contain vectors to train with"):
        builder.train_ivf(2, fragment_ids=[])
    with pytest.raises(UnknownColumnError):
        IndicesBuilder(table, "w")
    ivf.save(tmp_path / "ivf.lance")
    with pytest.raises(CorruptError, match="not a model of a vector index: expected a column 'codebook'"):
        PqModel.load(tmp_path / "ivf.lance")
    with pytest.raises(UnsupportedError):
        IndicesBuilder(ld.write_dataset(pa.table({"x": [1]}), tmp_path / "x.lance"), "x")


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"])
def test_centroids_of_an_index_equal_those_it_was_built_with(table: ld.LanceDataset, kind: str) -> None:
    centroids = IndicesBuilder(table, "v").train_ivf(4, distance_type="dot").centroids
    table.create_index("v", kind, name="i", metric="dot", ivf_centroids=centroids, num_sub_vectors=2)
    assert table.centroids(index_name="i") == table.centroids(column="v") == centroids
    model = table.get_ivf_model("i")
    assert model is not None
    assert (model.num_partitions, model.distance_type) == (4, "dot")


def test_centroids_require_a_vector_index(table: ld.LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="expected index_name or column"):
        table.centroids()
    with pytest.raises(IndexNotFoundError, match="column 'v' does not have a vector index"):
        table.centroids(column="v")
    with pytest.raises(IndexNotFoundError, match="no index 'none'"):
        table.get_ivf_model("none")
    table.create_index("v", "IVF_FLAT", name="empty", num_partitions=2, train=False)
    assert table.centroids(index_name="empty") is None
    table.add_columns({"x": "1"})
    table.create_scalar_index("x", "BTREE")
    with pytest.raises(NotIndexableError, match="index 'x_idx' does not have centroids"):
        table.centroids(index_name="x_idx")
