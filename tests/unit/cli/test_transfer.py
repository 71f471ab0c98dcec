"""`import` and `export`: rows between tables and files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import objects, rows, run

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, InvalidInputError, NotFoundError

ENDINGS = ("parquet", "csv", "tsv", "json", "jsonl", "ndjson", "csv.gz", "json.gz", "jsonl.zst")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Version 1 has ids 1 to 3, version 2 four rows."""
    uri = str(tmp_path_factory.mktemp("data") / "words.lance")
    ld.write_dataset({"id": [1, 2, 3], "word": ["a", None, "c, d"], "odd name": [0.5, 1.5, 2.5]}, uri)
    ld.dataset(uri).insert({"id": [4], "word": ["é"], "odd name": [3.5]})
    return uri


@pytest.mark.parametrize("ending", ENDINGS)
def test_exported_files_can_be_imported_again(words: str, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"rows.{ending}"
    assert objects("export", words, str(file)) == [{"rows": 4, "bytes": file.stat().st_size, "version": 2}]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    copy = str(tmp_path / "copy.lance")
    assert objects("import", copy, str(file)) == [{"version": 1, "rows": 4}]
    assert ld.dataset(copy).to_table().to_pylist() == ld.dataset(words).to_table().to_pylist()


def test_the_file_extension_selects_the_format(words: str, tmp_path: Path) -> None:
    for ending in ENDINGS:
        run("export", words, str(tmp_path / f"rows.{ending}"), "--columns", "id", "--where", "id < 3")
    assert pq.read_table(tmp_path / "rows.parquet").to_pydict() == {"id": [1, 2]}
    assert (tmp_path / "rows.csv").read_text() == "id\n1\n2\n"
    assert gzip.decompress((tmp_path / "rows.csv.gz").read_bytes()) == b"id\n1\n2\n"
    assert json.loads((tmp_path / "rows.json").read_text()) == [{"id": 1}, {"id": 2}]
    assert (tmp_path / "rows.jsonl").read_text() == '{"id":1}\n{"id":2}\n'


@pytest.mark.parametrize("arguments", [("--version", "1"), ("--where", "id < 4")])
def test_chosen_rows_and_columns_of_a_version_are_exported(
    words: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    file = tmp_path / "rows.tsv"
    assert objects("export", words, str(file), "--columns", '"odd name",id', *arguments)[0]["rows"] == 3
    assert file.read_text() == "odd name\tid\n0.5\t1\n1.5\t2\n2.5\t3\n"


def test_chosen_rows_and_columns_are_imported(words: str, tmp_path: Path) -> None:
    file, table = tmp_path / "rows.csv", str(tmp_path / "t.lance")
    run("export", words, str(file))
    run("import", table, str(file), "--columns", "word,id", "--where", "id > 2 -- the last")
    run("import", table, "SELECT 'x' AS word, 9 AS id", "--mode", "append")
    assert rows("head", table) == [
        {"word": "c, d", "id": "3"},
        {"word": "é", "id": "4"},
        {"word": "x", "id": "9"},
    ]


def test_types_unknown_to_duckdb_are_exported_as_native_types(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4, dtype=np.float16)), 2)
    table, file = str(tmp_path / "t.lance"), tmp_path / "rows.jsonl"
    ld.write_dataset(pa.table({"v": vectors, "j": pa.array(['{"a": 1}', None], pa.json_())}), table)
    run("export", table, str(file))
    assert [json.loads(line) for line in file.read_text().splitlines()] == [
        {"v": [0.0, 1.0], "j": {"a": 1}},
        {"v": [2.0, 3.0], "j": None},
    ]


def test_export_replaces_a_file_only_on_request_and_only_on_success(words: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("mine")
    with pytest.raises(AlreadyExistsError, match="--overwrite replaces it"):
        run("export", words, str(file))
    with pytest.raises(Exception, match="Conversion Error"):
        run("export", words, str(file), "--overwrite", "--where", "CAST(word AS INTEGER) = 1")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
    assert file.read_text() == "mine"
    run("export", words, str(file), "--overwrite", "--columns", "id", "--version", "1")
    assert file.read_text() == "id\n1\n2\n3\n"


@pytest.mark.parametrize("name", ["rows", "rows.txt", "rows.parquet.gz", "rows.gz", "s3://bucket/rows.csv"])
def test_an_unwritable_target_is_rejected(words: str, tmp_path: Path, name: str) -> None:
    with pytest.raises(
        InvalidInputError, match=r"the file name does not have a known extension|a file on a local disk"
    ):
        run("export", words, name if "://" in name else str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_or_file_suggests_the_nearest_name(words: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=f"no such folder; did you mean '{tmp_path.name}'"):
        run("export", words, f"{tmp_path}x/rows.csv")
    (tmp_path / "people.csv").write_text("id\n1\n")
    with pytest.raises(NotFoundError, match=r"no such file; did you mean 'people\.csv'"):
        run("import", str(tmp_path / "t.lance"), str(tmp_path / "peple.csv"))


def test_swapped_import_arguments_are_detected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="the table first: lance-duck import TABLE SOURCE"):
        run("import", "rows.csv", str(tmp_path / "t.lance"))


@pytest.mark.parametrize("command", ["import", "write"])
@pytest.mark.parametrize(("columns", "length"), [("v", 2), ("v:2", 2), ("v:float32[2]", 2)])
def test_import_stores_lists_as_vectors(command: str, columns: str, length: int, tmp_path: Path) -> None:
    file, table = tmp_path / "rows.jsonl", str(tmp_path / "t.lance")
    file.write_text('{"id": 1, "v": [0.5, 1.5]}\n{"id": 2, "v": null}\n')
    run(command, table, str(file), "--vector-columns", columns)
    ds = ld.dataset(table)
    assert ds.schema.field("v").type.list_size == length
    assert ds.to_table()["v"].to_pylist() == [[0.5, 1.5], None]
    with pytest.raises(InvalidInputError, match="no column 'w'"):
        run(command, str(tmp_path / "u.lance"), str(file), "--vector-columns", "w")
