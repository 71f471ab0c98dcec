"""Small fragments are read together, and separately if joining is impossible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.encoding.layouts.alike import read_alike
from lance_duck.encoding.layouts.page import Page
from lance_duck.errors import CorruptError, NotFoundError
from lance_duck.file import leaf
from lance_duck.file.joined import JoinedFile, join_files
from lance_duck.scan.costs import JOINED_FILE_BYTES
from lance_duck.scan.read import joined_fragments, tasks
from lance_duck.scan.read.fragment_reader import FragmentReader
from lance_duck.scan.read.joined_fragments import JoinedFragments
from lance_duck.store.request import watched

VERSIONS = ["2.0", "2.1", "2.2"]
HASTY = {"fsync": "false"}


def rows(start: int) -> pa.Table:
    ids = range(start, start + 4)
    maybe = [None if start % 8 and i % 2 else i for i in ids]
    texts = [f"text {i}" for i in ids]
    lists = [[i] * (i % 3) for i in ids]
    return pa.table({"id": ids, "maybe": maybe, "text": texts, "list": lists, "flag": [i % 2 == 0 for i in ids]})


@pytest.fixture(params=VERSIONS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A table of ten fragments of four rows."""
    table = str(tmp_path / "t.lance")
    for start in range(0, 40, 4):
        mode = "append" if start else "create"
        ld.write_dataset(rows(start), table, mode=mode, data_storage_version=request.param, storage_options=HASTY)
    return table


@pytest.fixture
def read_together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of joined fragment groups."""
    found: list[int] = []
    together, alone = JoinedFragments.read, FragmentReader.read

    def of_several(self: JoinedFragments, columns: Sequence[Any], wanted: Any) -> Any:
        found.append(len(self.live_rows))
        return together(self, columns, wanted)

    def of_one(self: FragmentReader, columns: Sequence[Any], wanted: Any) -> Any:
        found.append(1)
        return alone(self, columns, wanted)

    monkeypatch.setattr(JoinedFragments, "read", of_several)
    monkeypatch.setattr(FragmentReader, "read", of_one)
    return found


def test_a_scan_joins_more_and_more_fragments(path: str, read_together: list[int]) -> None:
    table = ld.dataset(path).to_table(use_threads=False)
    assert table.equals(pa.concat_tables([rows(start) for start in range(0, 40, 4)]))
    assert read_together == [1, 4, 5]


def test_fragments_without_an_index_are_joined(path: str, read_together: list[int]) -> None:
    table = ld.dataset(path)
    table.create_scalar_index("id", "BTREE")
    for start in range(40, 60, 4):
        ld.write_dataset(rows(start), path, mode="append", storage_options=HASTY)
    read_together.clear()
    found = ld.dataset(path).to_table(filter="id >= 50", use_threads=False)
    assert found.equals(pa.concat_tables([rows(start) for start in range(40, 60, 4)]).slice(10))
    assert set(read_together) == {1, 4}


def test_vectors_of_small_fragments_are_compared_together(tmp_path: Path, read_together: list[int]) -> None:
    for start in range(0, 12, 4):
        numbers = pa.array(range(start, start + 4), pa.float32())
        table = pa.table({"v": pa.FixedSizeListArray.from_arrays(numbers, 1)})
        ds = ld.write_dataset(table, tmp_path / "v.lance", mode="append", storage_options=HASTY)
    found = ds.search([5.2], k=3, columns=["v"])
    assert found["v"].to_pylist() == [[5.0], [6.0], [4.0]]
    assert read_together[0] == 3


def test_joined_files_stay_open_for_the_next_versions(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def spied(where: str, contents: Sequence[tuple[str, bytes]], *, checksums: bool) -> JoinedFile:
        opened.append(len(contents))
        return join_files(where, contents, checksums=checksums)

    monkeypatch.setattr(joined_fragments, "join_files", spied)
    ds = ld.dataset(path)
    first = ds.to_table(use_threads=False)
    assert opened == [4, 5]
    assert ds.to_table(use_threads=False) == first
    ds.delete("id = 21")
    assert ds.to_table(columns=["id"], use_threads=False)["id"].to_pylist() == [i for i in range(40) if i != 21]
    assert opened == [4, 5]
    ds.insert(rows(40))
    assert ds.count_rows("maybe IS NOT NULL OR id >= 0") == 43
    assert opened == [4, 5, 6]


def test_open_files_match_the_fields_of_their_version(path: str) -> None:
    ds = ld.dataset(path)
    first, flags = ds.to_table(), [i % 4 == 0 for i in range(40)]
    rewritten = ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    rewritten.execute({"id": range(40), "flag": flags})
    ds.drop_columns(["flag"])
    later = ld.dataset(path)
    assert later.to_table() == first.drop_columns(["flag"])
    assert later.checkout_version(10).to_table() == first
    assert later.checkout_version(11).to_table()["flag"].to_pylist() == flags


def test_each_file_has_the_rows_of_its_fragment(tmp_path: Path) -> None:
    ds = ld.write_dataset(rows(0).slice(0, 3), tmp_path / "t.lance", storage_options=HASTY)
    for count in (3, 1, 3, 1, 3, 1, 3):
        ds.insert(rows(0).slice(0, count))
    metadata = [fragment.metadata for fragment in ds.get_fragments()]
    counts = [3, 3, 3, 1, 1, 3, 1, 3]  # the third and the fourth exchanged, which are read together
    others = [replace(each, physical_rows=count) for each, count in zip(metadata, counts, strict=True)]
    operation = ld.LanceOperation.Overwrite(ds.schema, others)
    hostile = ld.LanceDataset.commit(ds.uri, operation, read_version=ds.version)
    with pytest.raises(CorruptError, match="rows"):
        hostile.to_table(use_threads=False)


def test_small_files_with_many_rows_are_not_joined(tmp_path: Path, read_together: list[int]) -> None:
    ones = pa.table({"x": np.ones(150_000, np.int64)})
    ds = ld.write_dataset(ones, tmp_path / "t.lance", max_rows_per_file=25_000, storage_options=HASTY)
    assert all(fragment.data_files()[0].file_size_bytes < JOINED_FILE_BYTES for fragment in ds.get_fragments())
    assert ds.to_table(use_threads=False) == ones
    assert read_together[-3:] == [2, 2, 1]
    more = pa.table({"x": np.ones(140_000, np.int64)})
    ds = ld.write_dataset(more, tmp_path / "u.lance", max_rows_per_file=70_000, storage_options=HASTY)
    read_together.clear()
    assert ds.to_table(use_threads=False) == more
    assert set(read_together) == {1}


def test_batches_end_at_fragment_boundaries(path: str) -> None:
    ds = ld.dataset(path)
    ds.delete("id IN (5, 6) OR (id >= 12 AND id < 16)")
    assert [batch.column("id").to_pylist() for batch in ds.to_batches(columns=["id"])][1:4] == [
        [4, 7],
        [8, 9, 10, 11],
        [16, 17, 18, 19],
    ]


def test_a_limit_reads_whole_fragments_together_and_the_last_one_separately(
    path: str, read_together: list[int]
) -> None:
    assert ld.dataset(path).to_table(columns=["id"], limit=22)["id"].to_pylist() == [*range(22)]
    assert sorted(read_together) == [1, 1, 4]


def test_fragments_with_different_columns_are_joined_separately(path: str, read_together: list[int]) -> None:
    ds = ld.dataset(path)
    ds.add_columns({"twice": "2 * id"})
    ld.write_dataset(rows(40).append_column("twice", pa.array([0, 0, 0, 0])), path, mode="append")
    read_together.clear()
    assert ld.dataset(path).to_table(columns=["twice"], use_threads=False)["twice"].to_pylist()[-6:] == [
        76,
        78,
        0,
        0,
        0,
        0,
    ]
    assert read_together == [1, 4, 5, 1]


def test_dictionaries_blobs_large_files_and_counted_reads_are_not_joined(
    tmp_path: Path, path: str, read_together: list[int]
) -> None:
    words = pa.table({"word": pa.array(["a", "b"] * 2).dictionary_encode()})
    large = pa.table({"bytes": [np.random.default_rng(1).bytes(JOINED_FILE_BYTES)]})
    for place, data in enumerate((words, large)):
        for mode in ("create", "append", "append"):
            ld.write_dataset(data, tmp_path / f"{place}.lance", mode=mode, storage_options=HASTY)
        assert ld.dataset(tmp_path / f"{place}.lance").to_table(use_threads=False).num_rows == 3 * data.num_rows
    with watched() as counted:
        ld.dataset(path).to_table(use_threads=False)
    assert counted.ranges > 10
    assert set(read_together) == {1}


def test_pages_with_the_same_layout_are_decoded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    def spied(pages: Sequence[Page], layouts: Sequence[Any]) -> Any:
        leaf_ = yield from read_alike(pages, layouts)
        decoded.append(len(pages) if leaf_ is not None else 0)
        return leaf_

    monkeypatch.setattr(leaf, "read_alike", spied)
    for start in range(0, 40, 4):
        mode = "append" if start else "create"
        ld.write_dataset(rows(start).select(["id", "text"]), tmp_path / "t.lance", mode=mode, storage_options=HASTY)
    assert ld.dataset(tmp_path / "t.lance").to_table(use_threads=False)["id"].to_pylist() == [*range(40)]
    assert decoded == [4, 4, 5, 5]


@pytest.mark.parametrize("sizes", [[2500] * 5, [900, 1500, 700, 2049, 1024, 1025]])
def test_pages_of_several_chunks_are_decoded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    decoded: list[bool] = []

    def spied(pages: Sequence[Page], layouts: Sequence[Any]) -> Any:
        leaf_ = yield from read_alike(pages, layouts)
        decoded.append(leaf_ is not None)
        return leaf_

    monkeypatch.setattr(leaf, "read_alike", spied)
    rng = np.random.default_rng(5)
    parts = []
    for size in sizes:
        numbers = rng.integers(1 << 39, 1 << 40, size)  # of one width in each page
        texts = pa.array([f"{number:x}"[: number % 11] for number in numbers])
        parts.append(pa.table({"id": numbers, "maybe": pa.array(numbers / 3, mask=numbers % 3 == 0), "text": texts}))
        mode = "append" if len(parts) > 1 else "create"
        ld.write_dataset(parts[-1], tmp_path / "t.lance", mode=mode, storage_options=HASTY)
    assert ld.dataset(tmp_path / "t.lance").to_table(use_threads=False) == pa.concat_tables(parts)
    assert decoded
    assert all(decoded)


def test_a_broken_or_missing_file_is_named(path: str) -> None:
    fifth = ld.dataset(path).get_fragments()[4].metadata.files[0].path
    file = Path(path, "data", fifth)
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"?")
    with pytest.raises(CorruptError, match=f"(?s){fifth}.*LANC"):
        ld.dataset(path).to_table()
    file.write_bytes(content[:-8])
    with pytest.raises(CorruptError, match=fifth):
        ld.dataset(path).count_rows("id > 3")
    file.unlink()
    with pytest.raises(NotFoundError, match=fifth):
        ld.dataset(path).to_table()


def test_row_addresses_and_counts_equal_those_of_single_fragments(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ld.dataset(path).delete("id % 5 = 0")
    hidden = ["id", "_rowaddr", "_rowoffset"]

    def answers() -> tuple[int, list[dict[str, int]]]:
        ds = ld.dataset(path)
        return ds.count_rows("maybe > 7"), ds.to_table(columns=hidden, filter="id > 9").to_pylist()

    together = answers()
    monkeypatch.setattr(tasks, "may_join", lambda _: False)
    assert together == answers()
    assert together[1][0] == {"id": 11, "_rowaddr": (2 << 32) + 3, "_rowoffset": 8}
