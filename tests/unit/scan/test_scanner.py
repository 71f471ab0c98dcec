"""Information that a scanner gives about its search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.query import BooleanQuery, MatchQuery, MultiMatchQuery, Occur, PrefixQuery
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import row_address_map
from lance_duck.scan.statistics import ScanStatistics

TEXTS = ["Ducks swim", None, "the lake of a duck"]


@pytest.fixture
def dataset(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(pa.table({"a": TEXTS, "b": ["duck", "Lakes", "swimming lakes"]}), tmp_path / "t.lance")


def test_query_words_are_marked_with_the_analyser_of_the_column(dataset: ld.LanceDataset) -> None:
    query = BooleanQuery([(Occur.SHOULD, MatchQuery("duck", "a")), (Occur.SHOULD, PrefixQuery("sw", "b"))])
    scanner = dataset.scanner(full_text_query=query)
    assert scanner.searched_texts == ("a", "b")
    assert scanner.highlight(pa.array(TEXTS), "a").to_pylist() == [
        "<b>Ducks</b> swim",
        None,
        "the lake of a <b>duck</b>",
    ]
    found = scanner.to_table()
    assert scanner.highlight(found.column("b"), "B", "*", "*").to_pylist() == ["*swimming* lakes", "duck"]


def test_fuzzy_matches_and_snippets_are_marked(dataset: ld.LanceDataset) -> None:
    scanner = dataset.scanner(full_text_query=MatchQuery("dusk", "a", fuzziness=1))
    parts = scanner.highlight(pa.array(TEXTS), "a", "[", "]", words=2)
    assert parts.to_pylist() == ["[Ducks] swim", None, "…a [duck]"]
    both = dataset.scanner(full_text_query=MultiMatchQuery("lake", ["a", "b"]))
    assert both.highlight(pa.array(["Lakes"]), "b").to_pylist() == ["<b>Lakes</b>"]


def test_highlight_requires_a_query_on_the_column(dataset: ld.LanceDataset) -> None:
    with pytest.raises(ld.LanceDuckError, match="highlight: the scanner does not have a full-text query"):
        dataset.scanner().highlight(pa.array(TEXTS), "a")
    with pytest.raises(ld.LanceDuckError, match="column: expected one of a, found b"):
        dataset.scanner(full_text_query=MatchQuery("duck", "a")).highlight(pa.array(TEXTS), "b")


@pytest.fixture
def numbers(tmp_path: Path) -> ld.LanceDataset:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(20), pa.float32()), 2)
    table = pa.table({"a": pa.array(range(10)), "v": vectors})
    return ld.write_dataset(table, tmp_path / "n.lance", max_rows_per_file=4)


SECOND = 1 << 32  # first row of the second fragment
NEAREST = {"column": "v", "q": [0.0, 0.0], "k": 2}


def test_lists_of_rows_are_all_that_a_scan_or_a_search_gives(numbers: ld.LanceDataset) -> None:
    rows = [1, 2, SECOND + 1]
    assert numbers.to_table(["a"], row_addr_allowlist=rows)["a"].to_pylist() == [1, 2, 5]
    assert numbers.to_table(["a"], "a > 1", row_addr_allowlist=rows)["a"].to_pylist() == [2, 5]
    assert numbers.to_table(["a"], row_addr_allowlist=rows, row_addr_blocklist=[2])["a"].to_pylist() == [1, 5]
    assert numbers.to_table(["a"], nearest=NEAREST, row_addr_allowlist=rows[1:])["a"].to_pylist() == [2, 5]
    assert numbers.to_table(["a"], nearest=NEAREST, row_addr_blocklist=rows)["a"].to_pylist() == [0, 3]
    assert numbers.count_rows(row_addr_blocklist=rows) == 7
    assert numbers.search([0.0, 0.0], k=1, columns=["a"], row_addr_allowlist=rows)["a"].to_pylist() == [1]


def test_row_allowlists_may_be_address_maps(numbers: ld.LanceDataset) -> None:
    rows = row_address_map(RowSet.of(np.array([3, SECOND], np.uint64)))
    assert numbers.to_table(["a"], row_addr_allowlist=rows)["a"].to_pylist() == [3, 4]
    whole = bytes([1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0])  # all of fragment 1
    assert numbers.to_table(["a"], row_addr_allowlist=whole)["a"].to_pylist() == [4, 5, 6, 7]


@pytest.mark.parametrize("rows", [b"zz", [-1], [1.5], [None], ["x"], 3])
def test_empty_row_allowlists_are_rejected(rows: Any, numbers: ld.LanceDataset) -> None:
    with pytest.raises(ld.InvalidInputError, match="row_addr_allowlist"):
        numbers.to_table(row_addr_allowlist=rows)


def test_the_statistics_callback_runs_after_the_scan(numbers: ld.LanceDataset) -> None:
    told: list[ScanStatistics] = []
    batches = numbers.to_batches(scan_stats_callback=told.append)
    next(batches)
    assert told == []
    assert sum(batch.num_rows for batch in batches) == 6
    (scan,) = told
    assert (scan.rows, scan.batches) == (10, 3)
    assert scan.iops == scan.requests > 0
    assert scan.bytes_read >= 10 * (8 + 8)
    assert scan.all_counts == {"iops": scan.iops, **vars(scan)}
    assert numbers.to_table(nearest=NEAREST, scan_stats_callback=told.append).num_rows == told[-1].rows == 2
    assert numbers.count_rows("a > 3", scan_stats_callback=told.append) == told[-1].rows == 6


def test_the_statistics_callback_reports_index_reads(tmp_path: Path) -> None:
    told: list[ScanStatistics] = []
    ld.write_dataset({"id": range(5000)}, tmp_path / "t.lance").create_scalar_index("id", "BTREE")
    dataset = ld.dataset(tmp_path / "t.lance")
    for filter_ in (None, "id = 7", "id = 7"):
        dataset.to_table(filter=filter_, scan_stats_callback=told.append)
    assert [(scan.indices_loaded, scan.parts_loaded > 0) for scan in told] == [(0, False), (1, True), (0, False)]


def test_the_default_batch_size_comes_from_the_environment(
    numbers: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "3")
    assert [batch.num_rows for batch in numbers.to_batches()] == [3, 1, 3, 1, 2]
    assert [batch.num_rows for batch in numbers.to_batches(batch_size=4)] == [4, 4, 2]
    for text in ("many", "0", "1" * 5000):
        monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", text)
        with pytest.raises(ld.InvalidInputError, match="LANCE_DEFAULT_BATCH_SIZE: invalid batch size"):
            numbers.to_table()
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "")
    assert numbers.to_table().num_rows == 10
