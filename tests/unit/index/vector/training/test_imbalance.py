"""When an index is retrained."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.index.vector.details import trained_rows, vector_parameters, with_trained_rows
from lance_duck.index.vector.training.imbalance import is_outgrown
from lance_duck.index.vector.training.index_spec import VectorSpec

DIM = 4


def details(trained: int, **parameters: Any) -> bytes:
    spec = VectorSpec.of({"index_type": "IVF_FLAT", **parameters}, pa.list_(pa.float32(), DIM))
    return with_trained_rows(spec.details(), trained)


def segment(*sizes: int) -> Any:
    partitions = SimpleNamespace(lengths=np.array(sizes, np.int64))
    return SimpleNamespace(num_rows=sum(sizes), dim=DIM, metric="l2", files=SimpleNamespace(partitions=partitions))


EVEN = [9000] * 10
ONE_LARGE = [*[100] * 19, 60_000]


@pytest.mark.parametrize(
    ("sizes", "trained", "parameters", "expected"),
    [
        (EVEN, 80_000, {}, False),  # has hardly grown
        (EVEN, 10_000, {}, True),  # 22 partitions would suit
        (EVEN, 10_000, {"num_partitions": 10}, False),
        (EVEN, 10_000, {"target_partition_size": 9000}, False),
        (ONE_LARGE, 10_000, {"num_partitions": 20}, True),
        (ONE_LARGE, 40_000, {"num_partitions": 20}, False),
        (ONE_LARGE, 0, {"num_partitions": 20}, False),  # own centroids
        ([*[1] * 19, 600], 100, {"num_partitions": 20}, False),  # none is large
    ],
)
def test_an_index_with_uneven_or_large_partitions_is_outgrown(
    sizes: list[int], trained: int, parameters: dict[str, int], expected: bool
) -> None:
    assert is_outgrown([segment(*sizes)], details(trained, **parameters)) is expected


def test_partitions_of_all_segments_count_together() -> None:
    halves = [segment(*(size // 2 for size in ONE_LARGE))] * 2
    said = details(10_000, num_partitions=20)
    assert is_outgrown(halves, said)
    assert is_outgrown([segment(*EVEN), segment(900_000)], details(80_000))  # which do not belong together


@pytest.mark.parametrize("broken", [b"", b"\xff\xff", details(1)[:-1]])
def test_unreadable_details_never_mark_an_index_as_outgrown(broken: bytes) -> None:
    assert trained_rows(broken) in (0, 1)
    if not trained_rows(broken):
        assert not is_outgrown([segment(*ONE_LARGE)], broken)


def test_requested_parameters_are_stored() -> None:
    said = details(7, num_partitions=5, sample_rate=99)
    assert vector_parameters(said)["num_partitions"] == 5
    assert (vector_parameters(said)["sample_rate"], trained_rows(said)) == (99, 7)
    assert "num_partitions" not in vector_parameters(details(7))


def test_trained_centroids_do_not_replace_requested_parameters() -> None:
    centroids = np.zeros((5, DIM))
    own = details(0, ivf_centroids=centroids)
    assert (vector_parameters(own)["num_partitions"], trained_rows(own)) == (5, 0)
    ours = details(0, ivf_centroids=centroids, num_partitions=5, asked_partitions=0, trained_rows=70)
    assert (vector_parameters(ours).get("num_partitions"), trained_rows(ours)) == (None, 70)
