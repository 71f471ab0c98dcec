"""Batches as arrays of JAX, in loops as they are written for it."""

from __future__ import annotations

import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck import examples
from lance_duck.errors import InvalidInputError
from lance_duck.loading import RowSelection, to_jax


@pytest.fixture
def docs(tmp_path: Path) -> ld.LanceDataset:
    table = examples.docs(100, dimensions=16)
    return ld.write_dataset(table, tmp_path / "docs.lance", max_rows_per_file=30)


def test_batches_are_arrays_of_jax(docs: ld.LanceDataset) -> None:
    rows = RowSelection.of(docs)
    batches = list(rows.batches(32, columns=["id", "v", "topic"], form="jax"))
    assert [batch["v"].shape for batch in batches] == [(32, 16), (32, 16), (32, 16), (4, 16)]
    assert all(isinstance(batch["v"], jax.Array) for batch in batches)
    assert (batches[0]["v"].dtype, batches[0]["id"].dtype) == (jnp.float32, jnp.int32)  # JAX has 32 bits by default
    assert jnp.concatenate([batch["id"] for batch in batches]).tolist() == list(range(100))
    assert batches[0]["topic"] == docs.to_table(columns=["topic"], limit=32)["topic"].to_pylist()
    stored = np.stack(docs.to_table(columns=["v"])["v"].to_numpy(zero_copy_only=False))
    assert np.array_equal(jnp.concatenate([batch["v"] for batch in batches]), stored)


def test_a_compiled_step_learns_from_shuffled_shards(docs: ld.LanceDataset) -> None:
    @jax.jit
    def step(weights: jax.Array, batch: dict[str, jax.Array]) -> jax.Array:
        def loss(w: jax.Array) -> jax.Array:
            return jnp.mean((batch["v"] @ w - batch["v"][:, 0]) ** 2)

        return weights - 0.5 * jax.grad(loss)(weights)

    weights = jnp.zeros(16)
    rows = RowSelection.of(docs)
    for epoch in range(40):
        for shard in range(2):
            part = rows.shuffle(epoch).shard(shard, 2, even=True, batch_size=10)
            for batch in part.batches(10, columns=["v"], form="jax"):
                weights = step(weights, batch)
    assert float(weights[0]) > 0.5
    assert float(jnp.abs(weights[1:]).max()) < 0.3


def test_64_bit_numbers_stay_64_bit_if_jax_enables_x64(docs: ld.LanceDataset) -> None:
    with jax.enable_x64(True):
        (batch,) = RowSelection.of(docs)[:5].batches(5, columns=["id"], form="jax")
        assert batch["id"].dtype == jnp.int64


def test_arrays_outlive_their_batch() -> None:
    batch = pa.record_batch({"x": np.arange(1000, dtype=np.float32)})
    array = to_jax(batch)["x"]
    del batch
    junk = [np.full(1000, 7, np.float32) for _ in range(100)]
    assert float(array.sum()) == 499_500
    assert junk


def test_nulls_are_rejected_and_unsupported_types_stay_lists() -> None:
    with pytest.raises(InvalidInputError, match="IS NOT NULL"):
        to_jax(pa.record_batch({"x": pa.array([1, None])}))
    found = to_jax(pa.record_batch({"s": ["a", "b"], "t": pa.array([1, 2], pa.timestamp("us")), "b": [True, False]}))
    assert found["s"] == ["a", "b"]
    assert found["t"].dtype == np.dtype("datetime64[us]")
    assert isinstance(found["b"], jax.Array)


def test_threaded_loaders_return_each_row_once(docs: ld.LanceDataset) -> None:
    seen: list[int] = []

    def load(part: RowSelection) -> None:
        for batch in part.batches(7, columns=["id"], form="jax"):
            seen.extend(batch["id"].tolist())

    rows = RowSelection.of(docs).shuffle(1)
    threads = [threading.Thread(target=load, args=(rows.shard(index, 3),)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(100))
