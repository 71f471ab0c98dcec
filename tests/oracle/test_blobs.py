"""Blobs compared with pylance: every way to store, scan, open, and read them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from oracle.cases import Cases
from oracle.compare import assert_tables_same

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError, NotFoundError, UnsupportedError

CASE_KIND = "blob"
HANDLING = (None, "all_binary", "blobs_descriptions", "all_descriptions")
V1 = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
V2 = lance.blob_field("b", inline_size_threshold=8, dedicated_size_threshold=60)
VALUES = [b"small", None, b"", b"p" * 20, b"D" * 90, b"q" * 30, b"", None, b"E" * 61, bytes(range(50)), b"x", b"last"]


@dataclass(frozen=True)
class Way:
    """A way to store blobs.

    Attributes:
        version: Data file version.
        field: Field type.
        make: Converts values to an array.
        path: Path of the blob column in the table.
    """

    version: str
    field: pa.Field
    make: Callable[[list[Any]], pa.Array]
    path: str = "b"

    def table(self, values: list[Any], first: int = 0) -> pa.Table:
        numbers = pa.array(range(first, first + len(values)))
        return pa.table([numbers, self.make(values)], pa.schema([pa.field("i", pa.int64()), self.field]))


def binary(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.large_binary())


def in_struct(
    field: pa.Field, make: Callable[[list[Any]], pa.Array]
) -> tuple[pa.Field, Callable[[list[Any]], pa.Array]]:
    inner = pa.struct([field, pa.field("x", pa.int64())])
    numbers = pa.int64()

    def build(values: list[Any]) -> pa.Array:
        parts = [make(values), pa.array(range(len(values)), numbers)]
        mask = pa.array([i % 5 == 4 for i in range(len(values))])
        return pa.StructArray.from_arrays(parts, fields=list(inner), mask=mask)

    return pa.field("s", inner), build


WAYS = {
    "v1 in 2.0": Way("2.0", V1, binary),
    "v1 in 2.1": Way("2.1", V1, binary),
    "v1 in 2.2": Way("2.2", V1, binary),
    "v2": Way("2.2", V2, lance.blob_array),
    "v2 with metadata": Way("2.2", lance.blob_field("b").with_metadata({"k": "v"}), lance.blob_array),
    "v1 in a struct": Way("2.1", *in_struct(V1, binary), path="s.b"),
    "v2 in a struct": Way("2.2", *in_struct(lance.blob_field("b"), lance.blob_array), path="s.b"),
}


def check(cases: Cases, name: str, uri: str, path: str = "b", source: str | None = None) -> None:
    """Compare all reads of a blob column; `source` is the source table of a clone.

    pylance does not find the older blobs of a clone by row, so the source table supplies them.
    """
    theirs, ours = lance.dataset(uri), ld.dataset(uri)
    for handling in HANDLING:
        for columns in (None, [path]):
            with cases.case(f"{name}: scan {columns} {handling}"):
                expected = theirs.to_table(columns, blob_handling=handling)
                assert_tables_same(expected, ours.to_table(columns, blob_handling=handling))
        if handling not in (None, "all_binary"):
            continue
        for condition in ("i > 3", f"{path} IS NULL", f"{path} IS NOT NULL AND i % 2 = 0"):
            with cases.case(f"{name}: {condition} {handling}"):
                expected = theirs.to_table(filter=condition, blob_handling=handling)
                assert_tables_same(expected, ours.to_table(filter=condition, blob_handling=handling))
        with cases.case(f"{name}: limit {handling}"):
            expected = theirs.to_table(limit=3, offset=2, blob_handling=handling)
            assert_tables_same(expected, ours.to_table(limit=3, offset=2, blob_handling=handling))
    check_rows(cases, name, lance.dataset(source or uri), ours, path)


def check_rows(cases: Cases, name: str, theirs: Any, ours: ld.LanceDataset, path: str) -> None:
    hidden = theirs.to_table(columns=["i"], with_row_id=True, with_row_address=True)
    count = hidden.num_rows
    order = [*range(count - 1, -1, -1), 0, count // 2]
    rows = {
        "indices": order,
        "ids": [hidden["_rowid"][i].as_py() for i in order],
        "addresses": pa.array([hidden["_rowaddr"][i].as_py() for i in order], pa.uint64()),
    }
    for selector, chosen in rows.items():
        with cases.case(f"{name}: by {selector}", 3):
            expected = theirs.read_blobs(path, **{selector: chosen})
            assert ours.read_blobs(path, **{selector: chosen}) == expected
            files = ours.take_blobs(path, **{selector: chosen})
            assert [None if f is None else f.readall() for f in files] == [data for _, data in expected]
            assert [None if f is None else f.size() for f in files] == [
                None if f is None else f.size() for f in theirs.take_blobs(path, **{selector: chosen})
            ]
            sizes = [0 if data is None else len(data) for _, data in expected]
            asked = pa.array(chosen).to_pylist()
            requests = [(r, size // 3, size - size // 3 - size // 4) for r, size in zip(asked, sizes, strict=True)]
            parts = theirs.read_blob_ranges(path, requests, selector=selector)
            assert ours.read_blob_ranges(path, requests, selector=selector) == parts
    with cases.case(f"{name}: take"):
        assert_tables_same(theirs.take(order), ours.take(order))


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("way", WAYS)
def test_a_blob_column_reads_correctly_after_every_change(way: str, stable: bool, tmp_path: Path, cases: Cases) -> None:
    chosen, uri = WAYS[way], str(tmp_path / "t")
    values = VALUES
    if chosen.version == "2.0" or chosen.path != "b":
        values = VALUES[:10]
    options: dict[str, Any] = {"data_storage_version": chosen.version, "max_rows_per_file": 5}
    dataset = lance.write_dataset(chosen.table(values), uri, enable_stable_row_ids=stable, **options)
    check(cases, f"{way}: written", uri, chosen.path)
    dataset.insert(chosen.table([b"added", None, b"A" * 70], 100))
    check(cases, f"{way}: appended", uri, chosen.path)
    dataset = lance.dataset(uri)
    dataset.delete("i IN (0, 3, 7, 101)")
    check(cases, f"{way}: deleted", uri, chosen.path)
    with cases.case(f"{way}: deleted rows are refused"), pytest.raises(InvalidInputError):
        ld.dataset(uri).read_blobs(chosen.path, ids=[0])
    dataset.optimize.compact_files(target_rows_per_fragment=100, materialize_deletions_threshold=0)
    check(cases, f"{way}: compacted", uri, chosen.path)
    dataset = lance.dataset(uri)
    dataset.shallow_clone(str(tmp_path / "clone"), dataset.version)
    check(cases, f"{way}: cloned", str(tmp_path / "clone"), chosen.path, uri)


@pytest.mark.parametrize(
    "values", [[b""] * 40, [None] * 40, [b"x" * 70] * 70, []], ids=["empty", "nulls", "large", "none"]
)
@pytest.mark.parametrize("way", ["v1 in 2.0", "v1 in 2.1", "v2"])
def test_blob_columns_with_one_storage_class_are_read_like_pylance(
    way: str, values: list[Any], tmp_path: Path, cases: Cases
) -> None:
    chosen, uri = WAYS[way], str(tmp_path / "t")
    lance.write_dataset(chosen.table(values), uri, data_storage_version=chosen.version)
    for handling in HANDLING:
        with cases.case(f"{way} {handling}"):
            expected = lance.dataset(uri).to_table(blob_handling=handling)
            assert_tables_same(expected, ld.dataset(uri).to_table(blob_handling=handling))
    with cases.case(f"{way} read"):
        rows = range(len(values))
        assert ld.dataset(uri).read_blobs("b", indices=rows) == lance.dataset(uri).read_blobs("b", indices=rows)


@pytest.mark.parametrize("way", ["v1 in 2.0", "v1 in 2.1", "v2"])
def test_a_column_that_older_fragments_lack(way: str, tmp_path: Path, cases: Cases) -> None:
    chosen, uri = WAYS[way], str(tmp_path / "t")
    plain = pa.table({"i": pa.array(range(3))})
    dataset = lance.write_dataset(plain, uri, data_storage_version=chosen.version)
    dataset.add_columns(pa.schema([chosen.field]))
    dataset.insert(chosen.table([b"new", None], 3))
    for handling in HANDLING:
        with cases.case(f"{way} {handling}"):
            expected = lance.dataset(uri).to_table(blob_handling=handling)
            assert_tables_same(expected, ld.dataset(uri).to_table(blob_handling=handling))
    with cases.case(f"{way} read"):
        assert [data for _, data in ld.dataset(uri).read_blobs("b", indices=range(5))] == [None] * 3 + [b"new", None]


def test_blobs_in_lists_are_read_like_pylance(tmp_path: Path, cases: Cases) -> None:
    offsets = pa.array([0, 2, 2, None, 5], pa.int32())
    items = lance.blob_array([b"a", None, b"", b"D" * 90, b"p" * 20])
    rows = pa.ListArray.from_arrays(offsets, items, type=pa.list_(lance.blob_field("item")))
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"l": rows}), uri, data_storage_version="2.2")
    for handling in HANDLING:
        with cases.case(str(handling)):
            expected = lance.dataset(uri).to_table(blob_handling=handling)
            assert_tables_same(expected, ld.dataset(uri).to_table(blob_handling=handling))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "sub dir").mkdir(parents=True)
    (folder / "a.bin").write_bytes(b"an external file")
    (folder / "sub dir" / "c%.bin").write_bytes(b"0123456789")
    return folder


def external(folder: Path) -> pa.Table:
    a, c = ((folder / name).as_uri() for name in ("a.bin", "sub dir/c%.bin"))
    values = [a, lance.Blob.from_uri(c, 2, 5), None, b"inline", lance.Blob.empty(), c, a]
    return pa.table(
        [pa.array(range(len(values))), lance.blob_array(values)],
        pa.schema([pa.field("i", pa.int64()), lance.blob_field("b")]),
    )


def test_external_blobs_are_read_like_pylance(outside: Path, tmp_path: Path, cases: Cases) -> None:
    table = external(outside)
    by_uri, by_base = str(tmp_path / "by_uri"), str(tmp_path / "by_base")
    lance.write_dataset(table, by_uri, data_storage_version="2.2", allow_external_blob_outside_bases=True)
    base = lance.DatasetBasePath(str(outside), "outside", False, 1)
    lance.write_dataset(table, by_base, data_storage_version="2.2", initial_bases=[base])
    for uri in (by_uri, by_base):
        check(cases, uri, uri)
        dataset = lance.dataset(uri)
        dataset.delete("i = 3")
        dataset.optimize.compact_files(materialize_deletions_threshold=0)
        check(cases, f"{uri} compacted", uri)


def test_blobs_in_another_base_path_are_read(tmp_path: Path, cases: Cases) -> None:
    for is_root in (True, False):
        base = lance.DatasetBasePath(str(tmp_path / f"base {is_root}"), "other", is_root, 1)
        uri = str(tmp_path / f"t{is_root}")
        table = WAYS["v2"].table(VALUES)
        lance.write_dataset(table, uri, data_storage_version="2.2", initial_bases=[base], target_bases=["other"])
        check(cases, f"dataset root: {is_root}", uri)


def test_missing_or_truncated_blob_files_raise_errors(outside: Path, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    options: dict[str, Any] = {"data_storage_version": "2.2", "allow_external_blob_outside_bases": True}
    lance.write_dataset(external(outside), uri, **options)
    dataset = ld.dataset(uri)
    (outside / "a.bin").unlink()
    (outside / "sub dir" / "c%.bin").write_bytes(b"0123")
    whole, part = dataset.take_blobs("b", indices=[0, 1])
    assert whole is not None
    assert part is not None
    with pytest.raises(NotFoundError):
        whole.size()
    assert part.size() == 5
    with pytest.raises(CorruptError):
        part.read(1)
    for rows in ([0], [1]):
        with pytest.raises(LanceDuckError):
            dataset.read_blobs("b", indices=rows)
    with pytest.raises(LanceDuckError):
        dataset.to_table(blob_handling="all_binary")
    assert dataset.count_rows() == 7
    inside = str(tmp_path / "inside")
    lance.write_dataset(WAYS["v2"].table(VALUES), inside, data_storage_version="2.2")
    for sidecar in Path(inside).glob("data/*/*.blob"):
        sidecar.write_bytes(sidecar.read_bytes()[:-1])
    with pytest.raises(CorruptError):
        ld.dataset(inside).to_table(blob_handling="all_binary")
    shutil.rmtree(next(Path(inside).glob("data/*/")))
    with pytest.raises(NotFoundError):
        ld.dataset(inside).to_table(blob_handling="all_binary")


def test_invalid_blob_requests_are_rejected_like_pylance(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(WAYS["v1 in 2.1"].table(VALUES), uri, data_storage_version="2.1")
    refused: list[Callable[[Any], object]] = [
        lambda d: d.take_blobs("i", indices=[0]),
        lambda d: d.read_blobs("b"),
        lambda d: d.read_blobs("b", indices=[0], ids=[0]),
        lambda d: d.take_blobs("b", indices=[len(VALUES)]),
        lambda d: d.take_blobs("b", addresses=[7 << 32]),
        lambda d: d.take_blobs("b", indices=[0], buffer_size=-1),
        lambda d: d.read_blob_ranges("b", [(0, 1, 5)], selector="indices"),
        lambda d: d.read_blob_ranges("b", [(0, 1, 2)], selector="rows"),
    ]
    for ask in refused:
        with pytest.raises(ValueError):  # noqa: PT011
            ask(lance.dataset(uri))
        with pytest.raises(InvalidInputError):
            ask(ld.dataset(uri))
    for dataset in (lance.dataset(uri), ld.dataset(uri)):
        assert dataset.take_blobs("b", ids=[]) == []
        assert dataset.read_blobs("b", ids=[]) == []


def test_indices_into_a_filtered_dataset_count_only_its_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(WAYS["v2"].table(VALUES), uri, data_storage_version="2.2")
    left = ld.dataset(uri).filter("i >= 8")
    assert [data for _, data in left.read_blobs("b", indices=[3, 0])] == [b"last", b"E" * 61]
    with pytest.raises(InvalidInputError):
        left.read_blobs("b", indices=[4])


def test_lists_of_version_1_blobs_are_rejected(tmp_path: Path) -> None:
    rows = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), binary([b"a"]), type=pa.list_(V1.with_name("item")))
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"l": rows}), uri, data_storage_version="2.1")
    with pytest.raises((UnsupportedError, CorruptError)):
        ld.dataset(uri).to_table(blob_handling="all_binary")


@pytest.fixture
def managed(tmp_path: Path) -> str:
    """Return a table whose blobs share files."""
    uri = str(tmp_path / "managed.lance")
    schema = pa.schema([pa.field("i", pa.int64()), V2], {"lance.blob.managed": "true"})
    rows = pa.table([pa.array(range(12)), lance.blob_array(VALUES)], schema)
    lance.write_dataset(rows, uri, data_storage_version="2.2", max_rows_per_file=7)
    lance.dataset(uri).delete("i = 3")
    return uri


def test_blobs_that_the_table_manages(managed: str, tmp_path: Path) -> None:
    dataset, theirs = ld.dataset(managed), lance.dataset(managed)
    kinds = {row["b"]["kind"] for row in theirs.to_table().to_pylist() if row["b"] is not None}
    assert kinds == {0, 4}
    assert_tables_same(theirs.to_table(), dataset.to_table())
    live = [value for i, value in enumerate(VALUES) if i != 3]
    rows = range(len(live))
    assert [None if b is None else b.read() for b in dataset.take_blobs("b", indices=rows)] == live
    assert [data for _, data in dataset.read_blobs("b", indices=rows)] == live
    assert dataset.to_table(blob_handling="all_binary")["b"].to_pylist() == live
    found = ld.connect(str(tmp_path)).sql("SELECT i FROM managed WHERE i > 3 ORDER BY i").fetchall()
    assert found == [(i,) for i in range(4, 12)]
    assert dataset.validate() is None


def test_files_of_blobs_that_are_missing_or_cut_short_are_problems(managed: str) -> None:
    file = max(Path(managed, "_blobs").iterdir(), key=lambda path: path.stat().st_size)
    data = file.read_bytes()
    file.write_bytes(data[:-1])
    assert "beyond the end" in str(ld.dataset(managed).find_problems())
    file.unlink()
    (problem, *_) = ld.dataset(managed).find_problems()
    assert problem.where.startswith("fragment")
    assert "blobs of 'b'" in problem.where
    assert file.name in problem.what
    file.write_bytes(data)
    assert ld.dataset(managed).find_problems() == []


def test_sidecars_that_are_missing_are_problems(tmp_path: Path) -> None:
    rows = pa.table([lance.blob_array(VALUES)], pa.schema([V2]))
    dataset = ld.write_dataset(rows, tmp_path / "t.lance")
    assert dataset.find_problems() == []
    sidecars = list((tmp_path / "t.lance").glob("data/*/*.blob"))
    for file in sidecars:
        file.unlink()
    found = " ".join(problem.what for problem in ld.dataset(dataset.uri).find_problems())
    assert sidecars
    assert {file.name for file in sidecars} == set(re.findall(r"\d+\.blob", found))


def test_managed_blobs_survive_clones_and_changes(managed: str, tmp_path: Path) -> None:
    live = [value for i, value in enumerate(VALUES) if i != 3]
    dataset = ld.dataset(managed)
    dataset.shallow_clone(str(tmp_path / "shallow.lance"))
    dataset.deep_clone(str(tmp_path / "deep.lance"))
    dataset.update({"i": "i + 100"}, where="i = 4")
    places = [
        (managed, [*live[:3], *live[4:], live[3]]),
        *((str(tmp_path / f"{n}.lance"), live) for n in ("shallow", "deep")),
    ]
    for uri, expected in places:
        for reader in (lance.dataset, ld.dataset):
            found = reader(uri).to_table(blob_handling="all_binary")["b"].to_pylist()
            assert found == expected, (uri, reader)
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
    dataset.optimize.compact_files()
    for reader in (lance.dataset, ld.dataset):
        assert reader(managed).to_table(blob_handling="all_binary")["b"].to_pylist() == places[0][1]
