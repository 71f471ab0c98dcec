from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import ArrayType, StringType

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError, WrongTypeError
from lance_duck.spark.io import source
from lance_duck.spark.io.options import ReadOptions
from lance_duck.spark.io.source import LancePartition, LanceReader, ReadPartition, declared, opened_version

ROWS = 40_000


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Fragments of 20,000, 10,000 and ten times 1,000 rows, in two versions; some rows are deleted."""
    uri = str(tmp_path / "t")
    ids = np.arange(ROWS)
    for start, stop, size in ((0, 20_000, 20_000), (20_000, 30_000, 10_000), (30_000, ROWS, 1000)):
        part = pa.table({"id": ids[start:stop], "s": [f"name {i}" for i in range(start, stop)]})
        ld.write_dataset(part, uri, mode="append", max_rows_per_file=size)
    ld.dataset(uri).delete("id % 1000 = 3")
    return uri


def reader(uri: str, **options: object) -> LanceReader:
    found = ReadOptions.of({"path": uri, **{name: str(value) for name, value in options.items()}})
    return pickle.loads(pickle.dumps(LanceReader(found, declared(found, opened_version(found)))))


def ids(made: LanceReader) -> list[int]:
    parts = [pickle.loads(pickle.dumps(part)) for part in made.partitions()]
    return [i for part in parts for batch in made.read(part) for i in batch.column("id").to_pylist()]


LIVING = [i for i in range(ROWS) if i % 1000 != 3]


def test_small_fragments_are_read_together_and_large_ones_in_ranges(table: str) -> None:
    made = reader(table, max_partition_bytes=900_000)
    parts = made.partitions()

    together = [[0], [0], [1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    assert [[piece.fragment for piece in part.pieces] for part in parts] == together
    assert [(part.offset, part.limit) for part in parts[:3]] == [(0, 16384), (16384, 3596), (None, None)]
    assert ids(made) == LIVING


def test_with_a_filter_ranges_are_of_addresses(table: str) -> None:
    made = reader(table, max_partition_bytes=900_000, filter="id >= 0")
    pieces = [part.pieces[0] for part in made.partitions()]
    assert [(piece.start, piece.stop) for piece in pieces[:3]] == [(0, 16384), (16384, 20000), (None, None)]
    assert ids(made) == LIVING


def test_fragment_ranges_return_each_live_row_once(table: str) -> None:
    ld.dataset(table).delete("id BETWEEN 100 AND 9000 OR id > 19000")
    made = reader(table, max_partition_bytes=300_000)
    found = [(part.offset, part.limit) for part in made.partitions()]
    assert found == [(0, 8192), (8192, sum(i < 100 or 9000 < i <= 19_000 for i in LIVING) - 8192)]
    assert ids(made) == [i for i in LIVING if i < 100 or 9000 < i <= 19_000]


def test_a_small_table_is_one_task_by_default(table: str) -> None:
    assert [len(part.pieces) for part in reader(table).partitions()] == [12]
    assert len(reader(table, min_partitions=4).partitions()) >= 4
    assert ids(reader(table, min_partitions=4)) == LIVING


@pytest.mark.parametrize("limit", [0, 1, 998, 20_000, 39_959, 100_000])
def test_a_limit_counts_living_rows(table: str, limit: int) -> None:
    assert ids(reader(table, limit=limit)) == LIVING[:limit]


def test_a_limit_counts_rows_that_match_a_filter(table: str) -> None:
    assert ids(reader(table, limit=3, filter="id >= 25000 -- so")) == [25000, 25001, 25002]
    found = [7, 10007, 20007, 30007]
    assert ids(reader(table, filter="id % 10000 = 7 -- so", max_partition_bytes=600_000)) == found


def test_a_few_indexed_rows_become_one_task(table: str) -> None:
    ld.dataset(table).create_scalar_index("id", "BTREE")
    made = reader(table, filter="id = 39000", max_partition_bytes=600_000)
    assert len(made.partitions()) == 1
    assert ids(made) == [39000]
    plain = reader(table, filter="id = 123", max_partition_bytes=600_000, use_scalar_index=False)
    assert ids(plain) == [123]


def test_a_reader_stays_on_its_version(table: str) -> None:
    made = reader(table)
    ld.dataset(table).delete("true")
    assert ids(made) == LIVING
    assert ids(reader(table)) == []
    assert ids(reader(table, version=3)) == list(range(ROWS))


def test_a_table_without_fragments_returns_no_rows(tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "t")
    made = reader(str(tmp_path / "t"))
    assert made.partitions() == []
    assert list(made.read(InputPartition(None))) == []


def test_hidden_columns_and_expressions_are_columns(table: str) -> None:
    made = reader(table, columns='{"id": "id", "twice": "id * 2", "at": "_rowaddr"}', filter="id = 20001")
    (batch,) = [batch for part in made.partitions() for batch in made.read(part)]
    assert batch.to_pylist() == [{"id": 20001, "twice": 40002, "at": (1 << 32) + 1}]
    with_names = reader(table, row_id="true", row_address="true", limit=1)
    (batch,) = [batch for part in with_names.partitions() for batch in with_names.read(part)]
    assert batch.schema.types[2:] == [pa.int64(), pa.int64()]


def test_invalid_options_raise_in_the_driver(table: str) -> None:
    with pytest.raises(NotFoundError):
        reader(table + "x")
    with pytest.raises(NotFoundError):
        reader(table, version=9)
    with pytest.raises(InvalidInputError, match="nothing"):
        reader(table, columns="nothing")
    with pytest.raises(InvalidInputError):
        reader(table, filter="nothing = 1")
    options = ReadOptions.of({"path": table})
    with pytest.raises(WrongTypeError):
        LanceReader(options, declared(options, opened_version(options)).add("_rowaddr", StringType()))


def test_a_recreated_table_is_read_again(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for value in (1, 2):
        ld.write_dataset(pa.table({"id": [value]}), uri)
        assert ids(reader(uri)) == [value]
        for path in sorted(Path(uri).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def vectors(*rows: list[float | None] | None) -> pa.Table:
    return pa.table({"v": pa.array(rows, pa.list_(pa.float32(), 2))})


def may_hold_nulls(uri: str, **options: object) -> bool:
    found = ReadOptions.of({"path": uri, **{name: str(value) for name, value in options.items()}})
    (field,) = declared(found, opened_version(found))
    assert isinstance(field.dataType, ArrayType)
    return field.dataType.containsNull


def test_vectors_without_null_items_are_declared_if_metadata_proves_it(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    ld.write_dataset(vectors([1, 2], None), uri)
    ld.write_dataset(vectors(None, None), uri, mode="append")
    assert may_hold_nulls(uri)
    assert not may_hold_nulls(uri, contains_null="auto")
    assert not may_hold_nulls(uri, contains_null="auto", columns='{"w": "v"}')
    assert may_hold_nulls(uri, contains_null="auto", columns='{"w": "CASE WHEN true THEN v END"}')
    (batch,) = reader(uri, contains_null="auto").read(LancePartition((ReadPartition(0),)))
    assert batch.to_pylist() == [{"v": [1, 2]}, {"v": None}]
    assert not batch.schema.field("v").type.value_field.nullable

    ld.write_dataset(vectors([3, None]), uri, mode="append")

    assert may_hold_nulls(uri, contains_null="auto")
    assert not may_hold_nulls(uri, contains_null="auto", version=2)


def test_many_fragments_are_not_checked_for_null_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    ld.write_dataset(vectors([1, 2], [3, 4]), uri, max_rows_per_file=1)
    assert not may_hold_nulls(uri, contains_null="auto")
    monkeypatch.setattr(source, "LOOKED_INTO", 1)
    assert may_hold_nulls(uri, contains_null="auto")


def test_a_null_item_in_a_vector_declared_without_nulls_is_rejected(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    ld.write_dataset(vectors([1, 2], None, [3, None]), uri)
    assert not may_hold_nulls(uri, contains_null="false")
    made = reader(uri, contains_null="false")
    with pytest.raises(InvalidInputError, match=r"column v\.element"):
        list(made.read(LancePartition((ReadPartition(0),))))
    (batch,) = reader(uri, contains_null="false", limit=2).read(LancePartition((ReadPartition(0),), 2))
    assert batch.to_pylist() == [{"v": [1, 2]}, {"v": None}]
    with pytest.raises(InvalidInputError, match="contains_null"):
        reader(uri, contains_null="perhaps")
