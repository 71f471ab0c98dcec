"""Blobs written by us, read by pylance: every way they are stored, through the life of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from oracle.cases import Cases

import lance_duck as ld
from lance_duck.errors import InvalidInputError

CASE_KIND = "blob"
LOCAL = {"fsync": "false"}
PLAIN = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
SMALL = ld.blob_field("b", inline_size_threshold=8, dedicated_size_threshold=60, pack_file_size_threshold=90)
VALUES = [b"small", None, b"", b"p" * 20, b"D" * 90, b"q" * 30, b"", None, b"E" * 61, bytes(range(50)), b"x", b"last"]


@dataclass(frozen=True)
class Way:
    """A way to store blobs: data file version, column type, and a function from values to an array."""

    version: str
    field: pa.Field
    make: Callable[[list[Any]], pa.Array]

    def table(self, values: list[Any], first: int = 0) -> pa.Table:
        numbers = pa.array(range(first, first + len(values)))
        return pa.table([numbers, self.make(values)], pa.schema([pa.field("i", pa.int64()), self.field]))


def binary(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.large_binary())


WAYS = {
    "2.0": Way("2.0", PLAIN, binary),
    "2.1": Way("2.1", PLAIN, binary),
    "2.2 of bytes": Way("2.2", PLAIN, binary),
    "2.2 of small bytes": Way("2.2", PLAIN.with_type(pa.binary()), lambda values: pa.array(values, pa.binary())),
    "2.2": Way("2.2", SMALL, ld.blob_array),
    "2.2, pylance's arrays": Way("2.2", lance.blob_field("b", inline_size_threshold=8), lance.blob_array),
}


def check(cases: Cases, name: str, uri: str, expected: list[Any]) -> None:
    theirs, ours = lance.dataset(uri), ld.dataset(uri)
    rows = list(range(len(expected)))
    with cases.case(f"{name}: valid", 0):
        theirs.validate()
    with cases.case(f"{name}: schema"):
        assert theirs.schema.equals(ours.schema, check_metadata=True)
    with cases.case(f"{name}: read"):
        assert [data for _, data in theirs.read_blobs("b", indices=rows)] == expected
        assert [data for _, data in ours.read_blobs("b", indices=rows)] == expected
    with cases.case(f"{name}: files"):
        files = theirs.take_blobs("b", indices=rows)
        assert [None if f is None else f.read() for f in files] == expected
    with cases.case(f"{name}: descriptions"):
        assert theirs.to_table()["b"].to_pylist() == ours.to_table()["b"].to_pylist()
    with cases.case(f"{name}: bytes"):
        assert theirs.to_table(blob_handling="all_binary")["b"].to_pylist() == expected


@pytest.mark.parametrize("way", WAYS)
def test_a_written_blob_column_reads_correctly_after_every_change(way: str, tmp_path: Path, cases: Cases) -> None:
    chosen, uri = WAYS[way], str(tmp_path / "t")
    options: dict[str, Any] = {"data_storage_version": chosen.version, "max_rows_per_file": 5, "storage_options": LOCAL}
    dataset = ld.write_dataset(chosen.table(VALUES), uri, **options)
    check(cases, f"{way}: written", uri, VALUES)
    added = [b"added", None, b"A" * 70]
    lance.dataset(uri).insert(chosen.table(added, 100))
    check(cases, f"{way}: appended by pylance", uri, [*VALUES, *added])
    dataset = ld.dataset(uri, storage_options=LOCAL)
    dataset.delete("i IN (0, 3, 7, 101)")
    left = [*(v for i, v in enumerate(VALUES) if i not in (0, 3, 7)), b"added", b"A" * 70]
    check(cases, f"{way}: deleted", uri, left)
    dataset.optimize.compact_files()
    assert len(dataset.get_fragments()) == 1
    check(cases, f"{way}: compacted", uri, left)
    ld.write_dataset(chosen.table(added, 200), uri, mode="append", storage_options=LOCAL)
    lance.dataset(uri).optimize.compact_files()
    check(cases, f"{way}: compacted by pylance", uri, [*left, *added])
    dataset = ld.dataset(uri, storage_options=LOCAL)
    dataset.update({"i": "i + 1000"}, where="i >= 100")
    moved = dataset.to_table(columns=["i"])["i"].to_pylist()
    by_number = dict(zip(moved, _blobs(dataset, len(moved)), strict=True))
    assert [by_number[i] for i in (1100, 1102, 1200, 1201, 1202)] == [b"added", b"A" * 70, *added]
    check(cases, f"{way}: updated", uri, [by_number[i] for i in moved])


def _blobs(dataset: ld.LanceDataset, count: int) -> list[bytes | None]:
    return [data for _, data in dataset.read_blobs("b", indices=range(count))]


def test_blob_sidecars_are_split_like_those_of_pylance(tmp_path: Path, cases: Cases) -> None:
    values = [b"p" * n for n in (9, 60, 30, 61, 8, 50, 40, 41, 90, 10, 10, 10)]
    table = WAYS["2.2"].table(values)
    lance.write_dataset(table, tmp_path / "theirs")
    ld.write_dataset(table, tmp_path / "ours", storage_options=LOCAL)
    sizes = [
        sorted((file.name, file.stat().st_size) for file in (tmp_path / name / "data").rglob("*.blob"))
        for name in ("theirs", "ours")
    ]
    described = [
        [
            (d["kind"], d["blob_id"], d["position"] if d["kind"] else 0, d["size"])
            for d in lance.dataset(tmp_path / name).to_table()["b"].to_pylist()
        ]
        for name in ("theirs", "ours")
    ]
    with cases.case("files", 2):
        assert sizes[0] == sizes[1]
        assert described[0] == described[1]


def test_default_blob_thresholds_equal_those_of_pylance(tmp_path: Path, cases: Cases) -> None:
    values = [b"a" * n for n in (65536, 65537, 4 << 20, (4 << 20) + 1)]
    table = pa.table({"b": ld.blob_array(values)})
    lance.write_dataset(table, tmp_path / "theirs")
    ld.write_dataset(table, tmp_path / "ours", storage_options=LOCAL)
    with cases.case("kinds"):
        found = [lance.dataset(tmp_path / name).to_table()["b"].to_pylist() for name in ("theirs", "ours")]
        assert [d["kind"] for d in found[1]] == [d["kind"] for d in found[0]] == [0, 1, 1, 2]
    with cases.case("read"):
        assert [b for _, b in lance.dataset(tmp_path / "ours").read_blobs("b", indices=range(4))] == values


@pytest.mark.parametrize("options", [{}, {"external_blob_mode": "ingest"}, {"allow_external_blob_outside_bases": True}])
@pytest.mark.parametrize("with_base", [False, True])
def test_external_blob_files_are_written_like_pylance(
    options: dict[str, Any], with_base: bool, tmp_path: Path, cases: Cases
) -> None:
    folder = tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "f").write_bytes(bytes(range(100)))
    uri = (folder / "sub" / "f").as_uri()
    values = [uri, ld.Blob.from_uri(uri, 5, 70), None, b"own"]
    table = pa.table([pa.array(range(4)), ld.blob_array(values)], pa.schema([pa.field("i", pa.int64()), SMALL]))
    expected = [bytes(range(100)), bytes(range(5, 75)), None, b"own"]
    their_bases = [lance.DatasetBasePath(folder.as_uri(), "outside")] if with_base else None
    our_bases = [ld.DatasetBasePath(folder.as_uri(), "outside")] if with_base else None
    target = str(tmp_path / "ours")
    if not with_base and not options:
        with cases.case("refused"):
            with pytest.raises(InvalidInputError, match="outside the base paths"):
                ld.write_dataset(table, target)
            with pytest.raises(OSError, match="outside registered external bases"):
                lance.write_dataset(table, tmp_path / "theirs")
        return
    lance.write_dataset(table, tmp_path / "theirs", initial_bases=their_bases, **options)
    dataset = ld.write_dataset(table, target, initial_bases=our_bases, storage_options=LOCAL, **options)
    check(cases, "external", target, expected)
    with cases.case("described alike"):
        theirs, ours = (lance.dataset(tmp_path / name).to_table()["b"].to_pylist() for name in ("theirs", "ours"))
        for one in (theirs, ours):
            for description in one:
                if description and description["kind"] == 0:
                    description["position"] = 0
        assert theirs == ours
    ld.write_dataset(table.slice(2), target, mode="append", storage_options=LOCAL)
    dataset = ld.dataset(target, storage_options=LOCAL)
    dataset.optimize.compact_files()
    check(cases, "external, compacted", target, [*expected, None, b"own"])
