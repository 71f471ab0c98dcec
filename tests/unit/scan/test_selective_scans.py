"""Few rows of a repeated string column: the scan output is proportional to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import UnsupportedError
from lance_duck.scan.predicate.tree import Compare

ROWS = 100_000
TEXTS = 5_000
NUMBERS = np.random.default_rng(1).integers(0, 2_000, ROWS)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    texts = pa.array([f"text number {i % TEXTS}" for i in range(ROWS)])
    columns = {"i": np.arange(ROWS), "n": NUMBERS, "text": texts, "dictionary": texts.dictionary_encode()}
    columns["struct"] = pa.StructArray.from_arrays([columns["dictionary"]], ["d"])
    folder = tmp_path_factory.mktemp("selective")
    return ld.write_dataset(pa.table(columns), str(folder / "t.lance"), max_rows_per_file=40_000)


def expected(most: int) -> list[str]:
    return [f"text number {i % TEXTS}" for i in np.flatnonzero(most > NUMBERS)]


@pytest.mark.parametrize("column", ["text", "dictionary", "struct"])
@pytest.mark.parametrize("most", [1, 40])
def test_batches_are_few_and_their_dictionaries_small(table: ld.LanceDataset, column: str, most: int) -> None:
    batches = list(table.to_batches(columns=[column], filter=f"n < {most}"))
    values = [value for batch in batches for value in batch.column(0).to_pylist()]
    assert [value["d"] if column == "struct" else value for value in values] == expected(most)
    assert len(batches) <= 8
    assert sum(batch.nbytes for batch in batches) < 64 * len(values)


@pytest.mark.parametrize("any_form", [False, True])
def test_duckdb_receives_few_batches_and_small_dictionaries(table: ld.LanceDataset, any_form: bool) -> None:
    schema = pa.schema([("text", pa.string()), ("dictionary", pa.dictionary(pa.int32(), pa.string()))])
    condition = Compare("<", ("n",), pa.scalar(4, pa.int64()))
    batches = list(table.duckdb_reader(schema, condition, any_form=any_form))
    for column in range(2):
        assert [value for batch in batches for value in batch.column(column).to_pylist()] == expected(4)
    assert len(batches) <= 8
    assert sum(batch.nbytes for batch in batches) < 128 * len(expected(4))


def test_taken_rows_carry_only_their_dictionary_entries(table: ld.LanceDataset) -> None:
    found = table.take([7, 70_007, 3], columns=["dictionary"])["dictionary"].combine_chunks()
    assert found.to_pylist() == ["text number 7", "text number 7", "text number 3"]
    assert len(found.dictionary) == 2


def test_tiny_fragments_reach_duckdb_in_few_batches(tmp_path: Path) -> None:
    rows = pa.table({"i": np.arange(200)})
    tiny = ld.write_dataset(rows, str(tmp_path / "t.lance"), max_rows_per_file=5)
    batches = list(tiny.duckdb_reader(rows.schema, None))
    assert [i for batch in batches for i in batch["i"].to_pylist()] == list(range(200))
    assert len(batches) < 20
    assert len(list(tiny.to_batches())) == 40


def test_filtered_batches_have_the_requested_size(table: ld.LanceDataset) -> None:
    sizes = [batch.num_rows for batch in table.to_batches(columns=["i"], filter="n < 40", batch_size=100)]
    assert sum(sizes) == len(expected(40))
    assert max(sizes) == 100
    assert sum(size < 100 for size in sizes) <= 4


def test_tagged_batches_belong_to_one_fragment(table: ld.LanceDataset) -> None:
    for batch, fragment in (
        (tagged.record_batch, tagged.fragment) for tagged in table.scanner(columns=["i"], filter="n < 9").scan_batches()
    ):
        assert set((batch["i"].to_numpy() // 40_000).tolist()) == {fragment.fragment_id}


@pytest.fixture
def narrow(tmp_path: Path) -> ld.LanceDataset:
    """A table whose fragments have other dictionaries each, more together than their index counts."""
    uri = str(tmp_path / "t.lance")
    for part in range(3):
        texts = pa.array([f"{part} {i}" for i in range(100)])
        column = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), texts)
        ld.write_dataset(pa.table({"i": np.arange(100) + 100 * part, "d": column}), uri, mode="append")
    return ld.dataset(uri)


def test_dictionaries_that_cannot_be_merged_come_in_separate_batches(narrow: ld.LanceDataset) -> None:
    every = [f"{part} {i}" for part in range(3) for i in range(100)]
    assert narrow.to_table(filter="i >= 0")["d"].to_pylist() == every
    assert narrow.take([7, 107, 207])["d"].to_pylist() == ["0 7", "1 7", "2 7"]
    narrow.create_scalar_index("i", "BTREE")
    third = ", ".join(str(i) for i in range(0, 300, 3))
    assert narrow.to_table(filter=f"i IN ({third})")["d"].to_pylist() == every[::3]
    assert narrow.to_table(filter="i % 100 < 40", order_by=["i"])["d"].to_pylist()[:41] == [*every[:40], "1 0"]
    assert narrow.take(list(range(299, -1, -1)))["d"].to_pylist() == every[::-1]
    assert narrow.to_table(order_by=["i"])["d"].to_pylist() == every
    with pytest.raises(UnsupportedError, match="dictionaries within their index type"):
        list(narrow.to_batches(batch_size=250, strict_batch_size=True))
