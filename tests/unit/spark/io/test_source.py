from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StringType

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
    assert [(p.pieces[0].start, p.pieces[0].stop) for p in parts[:3]] == [(0, 16384), (16384, 20000), (None, None)]
    assert ids(made) == LIVING


def test_a_small_table_is_one_task_unless_more_are_asked_for(table: str) -> None:
    assert [len(part.pieces) for part in reader(table).partitions()] == [12]
    assert len(reader(table, min_partitions=4).partitions()) >= 4
    assert ids(reader(table, min_partitions=4)) == LIVING


@pytest.mark.parametrize("limit", [0, 1, 998, 20_000, 39_959, 100_000])
def test_a_limit_counts_living_rows(table: str, limit: int) -> None:
    assert ids(reader(table, limit=limit)) == LIVING[:limit]


def test_a_limit_counts_rows_that_pass_a_filter(table: str) -> None:
    assert ids(reader(table, limit=3, filter="id >= 25000 -- so")) == [25000, 25001, 25002]
    found = [7, 10007, 20007, 30007]
    assert ids(reader(table, filter="id % 10000 = 7 -- so", max_partition_bytes=600_000)) == found


def test_few_rows_that_an_index_finds_are_one_task(table: str) -> None:
    ld.dataset(table).create_scalar_index("id", "BTREE")
    made = reader(table, filter="id = 39000", max_partition_bytes=600_000)
    assert len(made.partitions()) == 1
    assert ids(made) == [39000]
    plain = reader(table, filter="id = 123", max_partition_bytes=600_000, use_scalar_index=False)
    assert ids(plain) == [123]


def test_a_reader_keeps_to_its_version(table: str) -> None:
    made = reader(table)
    ld.dataset(table).delete("true")
    assert ids(made) == LIVING
    assert ids(reader(table)) == []
    assert ids(reader(table, version=3)) == list(range(ROWS))


def test_a_table_without_fragments_is_read_as_no_rows(tmp_path: Path) -> None:
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


def test_what_is_wrong_is_said_by_the_driver(table: str) -> None:
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


def test_a_table_that_took_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for value in (1, 2):
        ld.write_dataset(pa.table({"id": [value]}), uri)
        assert ids(reader(uri)) == [value]
        for path in sorted(Path(uri).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def test_pieces_cover_a_fragment_without_a_gap() -> None:
    found = list(source._cut(3, 100_000, 5))
    assert found[0] == ReadPartition(3, 0, 24576)
    assert [piece.start for piece in found[1:]] == [piece.stop for piece in found[:-1]]
    assert found[-1].stop == 100_000
    assert LancePartition((ReadPartition(1),)) == LancePartition((ReadPartition(1),))
