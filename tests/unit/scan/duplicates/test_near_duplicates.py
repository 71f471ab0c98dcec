"""`near_duplicates`: known signatures, a model of the whole search, and large groups of equal texts."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.write_ahead_log import create_log

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, NotIndexableError, UnsupportedError
from lance_duck.scan.duplicates.candidates import candidate_pairs, equal_groups
from lance_duck.scan.duplicates.parameters import MinHashParameters
from lance_duck.scan.duplicates.search import near_duplicates
from lance_duck.scan.duplicates.shingles import Shingler
from lance_duck.wire.pb import index_pb2

TEXTS = st.one_of(
    st.none(),
    st.lists(st.sampled_from(["red", "Blue", "güne", "x"]), max_size=7).map(" ".join),
)


def shingles(text: str | None) -> frozenset[tuple[str, ...]]:
    words = [token.text for token in ld.tokenize(text or "", stem=False, remove_stop_words=False)]
    return frozenset(tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))) if words else frozenset()


def model(texts: dict[int, str | None], threshold: float, equal_texts: str) -> list[tuple[int, int, float]]:
    """Return the pairs that share a band. With "first", the first row with a text stands for the others."""
    shingler = Shingler(MinHashParameters())
    sets = {row: shingles(text) for row, text in texts.items() if shingles(text)}
    keys = {row: set(shingler.signed(pa.array([texts[row]]))[1][0].tolist()) for row in sets}
    firsts: dict[frozenset[tuple[str, ...]], int] = {}
    for row in sorted(sets):
        firsts.setdefault(sets[row], row)
    pairs = []
    for one, other in combinations(sorted(sets), 2):
        common = len(sets[one] & sets[other]) / len(sets[one] | sets[other])
        are_first = firsts[sets[one]] == one and (common == 1 or firsts[sets[other]] == other)
        if keys[one] & keys[other] and common >= threshold and (equal_texts == "all" or are_first):
            pairs.append((one, other, common))
    return sorted(pairs)


def found(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_a_known_text_has_the_band_keys_of_lance() -> None:
    shingler = Shingler(MinHashParameters(4, 2, 2))
    has_text, keys = shingler.signed(pa.array([None, "The quick brown fox", ""]))
    assert has_text.tolist() == [False, True, False]
    assert [f"{key:016x}" for key in keys[0].tolist()] == ["00f30f3501d458ea", "01aec5df28d04915"]


@settings(max_examples=12, deadline=None)
@given(
    texts=st.lists(TEXTS, max_size=14),
    threshold=st.sampled_from([0.1, 0.5, 1.0]),
    equal_texts=st.sampled_from(["all", "first"]),
    stable=st.booleans(),
)
def test_the_search_equals_its_model(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str | None], threshold: float, equal_texts: str, stable: bool
) -> None:
    rows = pa.table({"n": range(len(texts)), "t": pa.array(texts, pa.string())})
    path = tmp_path_factory.mktemp("d") / "t"
    ds = ld.write_dataset(rows, path, max_rows_per_file=4, enable_stable_row_ids=stable)
    ds.delete("n % 5 = 4")
    ds.update({"n": "n + 100"}, where="n % 3 = 1")
    now = ds.to_table(["t"], with_row_id=True).to_pydict()
    assert found(ds.near_duplicates("t", threshold, equal_texts=equal_texts)) == model(
        dict(zip(now["_rowid"], now["t"], strict=True)), threshold, equal_texts
    )


def test_many_equal_texts_make_few_pairs_or_an_error(tmp_path: Path) -> None:
    texts = ["the same text"] * 10_000 + ["", None, "  "] * 3_000 + [f"text number {i} of many" for i in range(1000)]
    ds = ld.write_dataset({"t": texts}, tmp_path / "t")
    with pytest.raises(InvalidInputError, match=r"49,995,000 or more.*equal_texts='first'"):
        ds.near_duplicates("t")
    pairs = ds.near_duplicates("t", equal_texts="first")
    assert pairs.num_rows == 9_999
    assert set(pairs.column("left").to_pylist()) == {0}
    assert pairs.schema.types == [pa.uint64(), pa.uint64(), pa.float64()]


def test_a_filter_and_a_restriction_choose_the_rows(tmp_path: Path) -> None:
    ds = ld.write_dataset({"n": range(6), "t": ["one two three"] * 6}, tmp_path / "t")
    assert found(ds.near_duplicates("t", filter="n > 3")) == [(4, 5, 1.0)]
    assert found(ds.filter("n < 2").near_duplicates("t")) == [(0, 1, 1.0)]
    assert found(ds.near_duplicates("t", filter="n > 9")) == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), max_size=12), st.integers(1, 9))
def test_candidates_are_the_pairs_that_share_a_key(rows: list[tuple[int, ...]], most: int) -> None:
    keys = np.array(rows, np.uint64).reshape(-1, 3) | np.array([0, 1 << 56, 2 << 56], np.uint64)
    pairs = [
        tuple(sorted(pair))
        for left, right in candidate_pairs(keys, most)
        for pair in zip(left.tolist(), right.tolist(), strict=True)
    ]
    expected = [pair for pair in combinations(range(len(rows)), 2) if (keys[pair[0]] == keys[pair[1]]).any()]
    assert sorted(pairs) == expected
    assert all(len(left) <= most for left, _ in candidate_pairs(keys, most))
    groups = equal_groups(keys)
    for one, other in combinations(range(len(rows)), 2):
        assert (groups[one] == groups[other]) == (rows[one] == rows[other])


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    ds = ld.write_dataset({"n": [1], "t": ["a"], "l": [["a"]], "s": [{"t": "a"}]}, tmp_path / "t")
    for threshold in (0, 1.1, -1, float("nan"), "0.5", True):
        with pytest.raises(InvalidInputError, match="more than 0, up to 1"):
            near_duplicates(ds.handle.table, "t", threshold)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="equal_texts"):
        ds.near_duplicates("t", equal_texts="one")
    for column in ("n", "l", "s"):
        with pytest.raises(UnsupportedError, match="a column of strings"):
            ds.near_duplicates(column)
    with pytest.raises(InvalidInputError, match="nope"):
        ds.near_duplicates("nope")
    assert found(ds.near_duplicates("s.t")) == []
    with pytest.raises(NotIndexableError, match="does not build them; build it with pylance"):
        ds.create_scalar_index("t", "MINHASHLSH")


@pytest.mark.parametrize(
    "numbers", [{"num_hashes": 0}, {"num_bands": 0}, {"num_bands": 5}, {"shingle_size": 0}, {"num_hashes": 1 << 31}]
)
def test_details_that_contradict_themselves_are_corrupt(numbers: dict[str, int]) -> None:
    details = index_pb2.MinHashLshIndexDetails(**{"num_hashes": 128, "num_bands": 16, "shingle_size": 3, **numbers})
    with pytest.raises(CorruptError, match="wrong numbers"):
        MinHashParameters.of(details.SerializeToString(), "index 'i'")
    with pytest.raises(CorruptError, match="cannot be read"):
        MinHashParameters.of(b"\xff", "index 'i'")
    later = index_pb2.MinHashLshIndexDetails(num_hashes=4, num_bands=2, shingle_size=2, signature_version=1)
    with pytest.raises(UnsupportedError, match="unknown signatures"):
        MinHashParameters.of(later.SerializeToString(), "index 'i'")


def test_nested_texts_are_compared_and_views_of_logs_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    texts = [{"u": {"t": text}} for text in ("a b c d", "x", "a b c d")] + [None, {"u": None}]
    nested = ld.write_dataset(pa.table({"s": texts}), path)
    assert found(nested.near_duplicates("s.u.t")) == [(0, 2, 1.0)]
    create_log(path)
    with pytest.raises(UnsupportedError, match="does not have row ids"):
        ld.dataset(path, log="fresh").near_duplicates("s.u.t")
