"""Tables to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lance_duck as ld
from lance_duck import examples
from lance_duck.errors import AlreadyExistsError, InvalidInputError, WrongTypeError


def test_the_same_arguments_give_the_same_rows() -> None:
    assert examples.trips(50).equals(examples.trips(50))
    assert not examples.trips(50, seed=1).equals(examples.trips(50))
    assert examples.docs(20).equals(examples.docs(30).slice(0, 20))


def test_trips_are_plausible_and_start_in_known_zones() -> None:
    trips, zones = examples.trips(2_000), examples.zones()
    assert set(trips["zone"].to_pylist()) <= set(zones["zone"].to_pylist())
    for row in trips.to_pylist()[:100]:
        assert zones["name"][row["zone"] - 1].as_py().startswith(row["city"])
        assert 0.4 <= row["km"] < 100
        assert row["fare"] > row["km"]
        assert 0 <= row["tip"] <= row["fare"]
    assert 0 < trips["note"].null_count < 2_000
    assert trips["pickup"].to_pylist() == sorted(trips["pickup"].to_pylist())


def test_documents_are_unique_and_near_vectors_share_words() -> None:
    docs = examples.docs(625, dimensions=64)
    assert len(set(docs["text"].to_pylist())) == 625
    vectors = np.stack(docs["v"].to_numpy(zero_copy_only=False))
    assert (vectors.shape, vectors.dtype) == ((625, 64), np.float32)
    nearest = docs["text"][int(np.argmax(vectors @ examples.embed("the skipper at anchor", 64)))].as_py()
    assert "skipper" in nearest or "anchor" in nearest
    assert len(set(examples.docs(700)["text"].to_pylist())) == 625


def test_embed_accepts_one_string_or_several() -> None:
    one, two = examples.embed(["a duck", "a lake"])
    assert np.array_equal(one, examples.embed("A duck!"))
    assert np.linalg.norm(two) == pytest.approx(1)
    assert not examples.embed("…").any()
    assert examples.embed([], 3).shape == (0, 3)


@pytest.mark.parametrize(
    "call", [lambda: examples.trips(-1), lambda: examples.docs(-1), lambda: examples.embed("a", 0)]
)
def test_invalid_sizes_are_rejected(call: object) -> None:
    with pytest.raises(InvalidInputError):
        call()


def test_a_folder_of_tables_with_a_past(tmp_path: Path) -> None:
    home = examples.write(tmp_path / "data", rows=400)
    trips = ld.dataset(home / "trips.lance")
    assert trips.version == 5
    assert [ld.dataset(trips.uri, version=n).count_rows() for n in (1, 2, 3)] == [300, 300, 300]
    assert ld.dataset(trips.uri, version=4).count_rows("km < 0.6") == 0
    assert trips.index_statistics("pickup_idx")["num_unindexed_rows"] >= 100
    with ld.connect(home) as con:
        assert con.sql("SELECT count(DISTINCT city) FROM trips JOIN zones USING (zone)").fetchall() == [(5,)]
    with pytest.raises(AlreadyExistsError):
        examples.write(home, rows=400)
    examples.write(home, rows=8, mode="overwrite")
    assert ld.dataset(trips.uri).count_rows() <= 8
    with pytest.raises(InvalidInputError):
        examples.write(home, rows=7)


@pytest.mark.parametrize(
    ("folder", "error"), [(None, WrongTypeError), ("", InvalidInputError), ("s3://bucket/tables", InvalidInputError)]
)
def test_tables_are_written_into_folders_of_a_local_disk(folder: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        examples.write(folder)


@pytest.mark.parametrize("text", [5, None, ["a", 5], b"a"])
def test_only_strings_can_be_embedded(text: Any) -> None:
    with pytest.raises(WrongTypeError, match="expected a string, or a list of strings"):
        examples.embed(text)
