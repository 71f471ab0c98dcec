from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from corruption.containers import with_length
from unit.index.segments import Segments, stay

from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError
from lance_duck.index.btree import search as search_module
from lance_duck.index.btree.kind import BTREE
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import Details, MergeInput
from lance_duck.index.query import Among, Between, ContainsAny, Except, HasPrefix, Null
from lance_duck.store import open_store


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(BTREE, tmp_path)


def small(rows: int) -> dict[str, Any]:
    return {"parameters": {"zone_size": rows}}


def int64(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.int64())


def test_the_kind_has_the_name_and_versions_of_the_format() -> None:
    assert (BTREE.name, BTREE.rows_by, list(BTREE.versions)) == ("BTree", "version", [0, 1])
    assert BTREE.type_url == "/lance.table.BTreeIndexDetails"
    assert BTREE.can_follow()


@pytest.mark.parametrize("type_", [pa.list_(pa.int64()), pa.null(), pa.struct([]), pa.binary(0)])
def test_unordered_types_are_not_supported(type_: pa.DataType) -> None:
    assert not BTREE.supports(type_)


def test_prefixes_are_answered_for_strings_and_binary() -> None:
    assert BTREE.answers(HasPrefix(pa.scalar("a")), pa.string())
    assert BTREE.answers(Except(HasPrefix(pa.scalar(b"a"))), pa.large_binary())
    assert not BTREE.answers(HasPrefix(pa.scalar(b"a")), pa.binary(3))
    assert not BTREE.answers(ContainsAny(pa.array([1])), pa.int64())


def test_ids_are_version_0_and_addresses_version_1(segments: Segments) -> None:
    segments.build(int64([1]), stable_row_ids=True)
    assert segments.details == Details(0)
    segments.build(int64([1]))
    assert segments.details == Details(1)


def test_row_identifiers_are_kept(segments: Segments) -> None:
    rows = [5, (7 << 32) + 1, (1 << 40) + 3]
    index = segments.build(int64([2, 1, 2]), rows)
    answer = index.search(Among(int64([2])))
    assert answer.is_exact
    assert list(answer.sure) == [rows[0], rows[2]]


@pytest.mark.parametrize("values", [[], [None, None, None, None, None]])
def test_an_index_without_values_finds_nulls(segments: Segments, values: list[None]) -> None:
    index = segments.build(int64(list(values)), **small(2))
    assert len(index.search(Null()).sure) == len(values)
    assert not index.search(Between()).sure
    assert index.estimate(Among(int64([1]))) == 0
    assert index.statistics() == {"min": "N/A", "max": "N/A", "num_pages": -(-len(values) // 2)}


def test_values_that_fill_many_pages_are_found_in_all(segments: Segments) -> None:
    index = segments.build(int64([None] * 3 + [1] * 2 + [5] * 20 + [6]), **small(3))
    assert list(index.search(Among(int64([5]))).sure) == list(range(5, 25))
    assert list(index.search(Between(pa.scalar(5), None, low_open=True)).sure) == [25]
    assert list(index.search(Except(Among(int64([5])))).sure) == [3, 4, 25]
    assert index.statistics() == {"min": "1", "max": "6", "num_pages": 9}


def test_an_estimate_reads_no_page_and_is_never_too_low(segments: Segments) -> None:
    index = segments.build(int64(list(range(100))), **small(10))
    (segments.folder / segments.directory / "page_data.lance").write_bytes(b"")
    assert index.estimate(Among(int64([200]))) == 0
    assert index.estimate(Between(pa.scalar(20), pa.scalar(29))) == 10
    assert index.estimate(Between(pa.scalar(15), pa.scalar(25))) == 20
    assert index.estimate(Except(Between(pa.scalar(15), pa.scalar(45)))) == 80
    assert index.estimate(Among(int64([15]))) == 10
    assert index.estimate(Among(int64([15, 55]))) is None
    assert index.estimate(Null()) == 0


def test_many_pages_are_read_in_batches(segments: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "PAGES_AT_ONCE", 3)
    index = segments.build(pa.array([f"k{i:03}" for i in range(100)]), **small(2))
    wanted = pa.array([f"k{i:03}" for i in range(0, 100, 3)] + ["none", "k000"])
    assert list(index.search(Among(wanted)).sure) == list(range(0, 100, 3))


def test_pages_are_cached_and_counted(segments: Segments) -> None:
    index = segments.build(int64(list(range(100))), **small(10))
    before = index.nbytes
    index.search(Among(int64([15])))
    assert index.nbytes == before + 10 * 16
    index.prewarm()
    assert index.nbytes == before + 100 * 16


def contents(segments: Segments) -> list[tuple[list[Any], ...]]:
    files = SegmentReader(segments.store, segments.directory)
    data, lookup = files.open("page_data.lance"), files.open("page_lookup.lance")
    pages = lookup.read(["min", "max", "null_count", "page_idx"])
    return [tuple(map(repr, column.to_pylist())) for column in (*data.read(["values", "ids"]), *pages)]


@pytest.mark.parametrize("kind", ["int64", "float64", "string", "few", "one"])
def test_spilling_writes_the_same_files_and_leaves_no_temporary_files(
    segments: Segments, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, {"few": 3, "one": 1}.get(kind, 1000), 3000)
    values = pa.array([None if n % 9 == 8 else f"t{n}" if kind == "string" else n for n in numbers.tolist()])
    values = values.cast(pa.float64()) if kind == "float64" else values
    rows = np.arange(3000) * 5
    segments.build(values, rows, batch=50, **small(7))
    expected = contents(segments)
    segments.build(values, rows, batch=50, memory_limit=30_000, **small(7))
    assert contents(segments)[0] == expected[0]
    assert contents(segments) == expected
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_a_merge_within_memory_writes_the_same_files_without_a_temporary_folder(
    segments: Segments, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(1).integers(0, 1000, 900)
    values = pa.array([None if n % 9 == 8 else f"t{n}" if kind == "string" else n for n in numbers.tolist()])
    parts = [
        MergeInput(segments.build(values[at : at + 300], np.arange(at, at + 300), **small(7)), stay) for at in (0, 300)
    ]
    segments.merge(parts, values[600:], np.arange(600, 900), memory_limit=20_000)
    expected = contents(segments)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    segments.merge(parts, values[600:], np.arange(600, 900))
    assert contents(segments) == expected
    with pytest.raises(FileNotFoundError):
        segments.merge(parts, values[600:], np.arange(600, 900), memory_limit=20_000)


def test_a_failed_build_leaves_no_files(segments: Segments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))

    def broken(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise CorruptError("broken")

    part = MergeInput(segments.build(int64(list(range(50))), **small(7)), broken)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(CorruptError):
        segments.merge([part], int64(list(range(500))), memory_limit=2000)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_a_merge_moves_and_drops_entries(segments: Segments) -> None:
    index = segments.build(int64([3, None, 1, 2, None]), [10, 11, 12, 13, 14], **small(2))
    names = {10: 100, 11: 7, 13: 5}

    def follow(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lives = np.array([row in names for row in rows.tolist()], np.bool_)
        return np.array([names.get(row, 0) for row in rows.tolist()], np.uint64), lives

    merged = segments.merge([MergeInput(index, follow)])
    assert contents(segments)[:2] == [("None", "2", "3"), ("7", "5", "100")]
    assert list(merged.search(Null()).sure) == [7]


def test_a_merge_may_drop_every_entry(segments: Segments) -> None:
    index = segments.build(int64([3, None, 1]))
    merged = segments.merge([MergeInput(index, lambda rows: (rows, np.zeros(len(rows), np.bool_)))])
    assert not merged.search(Between()).sure
    assert merged.statistics()["num_pages"] == 0


def test_new_rows_join_the_entries_of_several_segments(segments: Segments) -> None:
    parts = [
        MergeInput(segments.build(int64([1, 5, None]), [0, 1, 2]), stay),
        MergeInput(segments.build(int64([5, 3]), [3, 4]), stay),
    ]
    segments.merge(parts, int64([4, None, 5]), [5, 6, 7])
    assert contents(segments)[:2] == [
        ("None", "None", "1", "3", "4", "5", "5", "5"),
        ("2", "6", "0", "4", "5", "1", "3", "7"),
    ]


def test_progress_reports_indexed_rows(segments: Segments) -> None:
    told: list[int] = []
    segments.build(int64(list(range(25))), batch=10, progress=told.append)
    assert told == [10, 20, 25]


@pytest.mark.parametrize("size", [0, -1, "7", 1 << 40])
def test_a_page_size_of_zero_is_rejected(segments: Segments, size: Any) -> None:
    with pytest.raises(InvalidInputError, match="zone_size"):
        segments.build(int64([1]), **small(size))


class Broken:
    """Writes segments page by page, as they should not be."""

    def __init__(self, segments: Segments) -> None:
        self.segments = segments
        self.values: pa.Array = int64([None, 1, 2, 3, 4])
        self.ids: pa.Array = pa.array(range(5), pa.uint64())
        self.pages: dict[str, pa.Array] = {
            "min": int64([None, 2, 4]),
            "max": int64([1, 3, 4]),
            "null_count": pa.array([1, 0, 0], pa.uint32()),
            "page_idx": pa.array([0, 1, 2], pa.uint32()),
        }
        self.metadata = {"batch_size": "2", "range_partitioned": "false"}
        self.parts: dict[str, slice] = {"page_data.lance": slice(0, 5)}

    def open(self, type_: pa.DataType | None = None) -> Any:
        with SegmentWriter(self.segments.store) as writer:
            for name, part in self.parts.items():
                self._write(writer, name, {"values": self.values[part], "ids": self.ids[part]}, {})
            self._write(writer, "page_lookup.lance", self.pages, self.metadata)
        return self.segments.open(writer.directory, type_ or pa.int64())

    @staticmethod
    def _write(writer: SegmentWriter, name: str, columns: dict[str, pa.Array], metadata: dict[str, str]) -> None:
        batch = pa.record_batch(columns)
        with writer.create(name, batch.schema.with_metadata(metadata)) as file:
            file.write(batch)
            writer.add(name, file)


@pytest.fixture
def broken(segments: Segments) -> Broken:
    return Broken(segments)


def test_a_handwritten_segment_is_readable(broken: Broken) -> None:
    assert list(broken.open().search(Between(pa.scalar(2), pa.scalar(3))).sure) == [2, 3]


def test_pages_may_be_stored_in_any_order(broken: Broken) -> None:
    broken.pages = {name: column.take([2, 0, 1]) for name, column in broken.pages.items()}
    assert list(broken.open().search(Between(pa.scalar(2), pa.scalar(3))).sure) == [2, 3]


def test_entries_may_be_range_partitioned(broken: Broken) -> None:
    broken.parts = {"part_0_page_data.lance": slice(0, 3), "part_4294967296_page_data.lance": slice(3, 5)}
    broken.pages |= {"min": int64([None, 2, 3]), "max": int64([1, 2, 4])}
    broken.metadata |= {"range_partitioned": "true", "page_num_per_range_partition": "[[0,2],[4294967296,1]]"}
    index = broken.open()
    assert [list(index.search(Among(int64([n]))).sure) for n in range(1, 5)] == [[1], [2], [3], [4]]
    assert list(index.search(Between()).sure) == [1, 2, 3, 4]
    assert index.search(Null()).sure.rows().tolist() == [0]


@pytest.mark.parametrize(
    "metadata",
    [
        {"batch_size": "0"},
        {"batch_size": "-2"},
        {"batch_size": "x"},
        {"batch_size": "9" * 30},
        {"batch_size": "1"},
        {"batch_size": "4096"},
        {"range_partitioned": "true"},
        {"range_partitioned": "true", "page_num_per_range_partition": "[[0]]"},
        {"range_partitioned": "true", "page_num_per_range_partition": "{}"},
        {"range_partitioned": "true", "page_num_per_range_partition": "[[0,-1]]"},
    ],
)
def test_invalid_metadata_is_corrupt(broken: Broken, metadata: dict[str, str]) -> None:
    broken.metadata |= metadata
    with pytest.raises(CorruptError):
        broken.open()


@pytest.mark.parametrize(
    "pages",
    [
        {"page_idx": pa.array([0, 1, 3], pa.uint32())},
        {"page_idx": pa.array([0, 1, 1], pa.uint32())},
        {"page_idx": pa.array([0, 1, 2], pa.int32())},
        {"page_idx": pa.array([0, 1, None], pa.uint32())},
        {"null_count": pa.array([2, 0, 0], pa.uint32())},
        {"null_count": pa.array([0, 1, 0], pa.uint32())},
        {"null_count": pa.array([1, 0, 2**32 - 1], pa.uint32())},
        {"min": int64([None, None, 4])},
        {"min": int64([0, 2, 4])},
        {"min": int64([None, 0, 4])},
        {"min": int64([None, 4, 4])},
        {"min": int64([None, 2, 2])},
        {"max": int64([3, 3, 4])},
        {"max": int64([1, 3, 3])},
        {"max": int64([1, None, 4])},
        {"max": pa.array([1, 3, 4], pa.int32())},
        {"min": pa.array([None, "2", "4"])},
    ],
)
def test_contradictory_pages_are_corrupt(broken: Broken, pages: dict[str, pa.Array]) -> None:
    broken.pages |= pages
    with pytest.raises(CorruptError):
        broken.open()


def test_empty_pages_are_rejected(broken: Broken) -> None:
    broken.values, broken.ids = broken.values[:4], broken.ids[:4]
    with pytest.raises(CorruptError, match="page count of the B-tree"):
        broken.open()


def test_a_missing_column_is_rejected(broken: Broken) -> None:
    del broken.pages["max"]
    with pytest.raises(CorruptError, match="max"):
        broken.open()


def test_values_of_another_type_are_corrupt(broken: Broken) -> None:
    with pytest.raises(CorruptError, match="has the wrong type"):
        broken.open(pa.int32())


def test_a_missing_partition_file_raises_not_found(broken: Broken) -> None:
    broken.metadata |= {"range_partitioned": "true", "page_num_per_range_partition": "[[0,3]]"}
    with pytest.raises(NotFoundError):
        broken.open()


@pytest.mark.parametrize(
    "values",
    [
        [None, 1, 3, 2, 4],
        [None, 1, 2, 5, 4],
        [None, 1, 0, 3, 4],
        [None, 1, None, 3, 4],
        [0, 1, 2, 3, 4],
        [1, None, 2, 3, 4],
        [None, 0, 2, 3, 4],
    ],
)
def test_a_page_that_violates_its_bounds_is_corrupt(broken: Broken, values: list[int | None]) -> None:
    broken.values = int64(values)
    index = broken.open()
    with pytest.raises(CorruptError):
        index.search(Among(int64([1, 2, 3])))


def test_null_row_addresses_are_rejected(broken: Broken) -> None:
    broken.ids = pa.array([0, 1, None, 3, 4], pa.uint64())
    index = broken.open()
    with pytest.raises(CorruptError, match="rows of the B-tree"):
        index.search(Among(int64([2])))


def test_unsorted_entries_are_not_merged(broken: Broken) -> None:
    broken.values = int64([None, 1, 2, 4, 3])
    index = broken.open()
    with pytest.raises(CorruptError):
        broken.segments.merge([MergeInput(index, stay)])


@pytest.mark.parametrize("name", ["page_data.lance", "page_lookup.lance"])
@pytest.mark.parametrize("num_rows", [0, 5, 1 << 28, 1 << 60, (1 << 63) - 1, (1 << 64) - 1])
def test_a_false_row_count_is_corrupt_and_allocates_nothing(segments: Segments, name: str, num_rows: int) -> None:
    segments.store = open_store(str(segments.folder), {"checksums": "false"})
    segments.build(int64([3, 1, 2]), **small(2))
    segments.path(name).write_bytes(with_length(segments.path(name).read_bytes(), num_rows))
    with pytest.raises(CorruptError, match=r"page count|row count|rows|pages"):
        segments.open(segments.directory, pa.int64())
