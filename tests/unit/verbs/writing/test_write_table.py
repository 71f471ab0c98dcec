from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, IncompatibleError, InvalidInputError, UnsupportedError
from lance_duck.verbs.writing import settings
from lance_duck.wire import flags

ROWS = pa.table({"a": [1, 2, 3], "b": ["x", "y", None], "s": [{"p": 1, "q": 2}] * 3})


def left(place: str) -> list[str]:
    """Return the files below a path."""
    return sorted(str(p.relative_to(place)) for p in Path(place).rglob("*") if p.is_file())


@pytest.fixture
def table(place: str, hasty: dict[str, str]) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, place, storage_options=hasty)


SOURCES: dict[str, Any] = {
    "table": ROWS,
    "batch": ROWS.to_batches()[0],
    "reader": lambda: ROWS.to_reader(),
    "batches": lambda: iter(ROWS.to_batches()),
    "rows": ROWS.to_pylist(),
    "columns": ROWS.to_pydict(),
    "pandas": ROWS.to_pandas(),
    "polars": pl.from_arrow(ROWS),
    "duckdb": lambda: duckdb.sql("SELECT * FROM ROWS"),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_data_of_every_supported_type_becomes_a_table(kind: str, place: str, hasty: dict[str, str]) -> None:
    source = SOURCES[kind]
    made = ld.write_dataset(source() if callable(source) else source, place, storage_options=hasty)
    assert (made.version, made.uri) == (1, place)
    assert made.to_table().to_pydict() == ROWS.to_pydict()


def test_a_table_becomes_a_table(table: ld.LanceDataset, tmp_path: Path) -> None:
    copied = ld.write_dataset(table, tmp_path / "copy")
    assert copied.to_table() == ROWS
    filtered = ld.write_dataset(table.scanner(columns=["a"], filter="a > 1"), copied, mode="overwrite")
    assert filtered.to_table().to_pydict() == {"a": [2, 3]}


def test_memory_uris_hold_tables() -> None:
    made = ld.write_dataset(ROWS, "memory://written/t")
    made = ld.write_dataset(ROWS, made, mode="append")
    assert ld.dataset("memory://written/t").count_rows() == made.count_rows() == 6


def test_an_existing_table_is_not_created_again(table: ld.LanceDataset) -> None:
    before = left(table.uri)
    for target in (table, table.uri, Path(table.uri)):
        with pytest.raises(AlreadyExistsError, match="already exists"):
            ld.write_dataset(ROWS, target)
    assert left(table.uri) == before
    assert issubclass(AlreadyExistsError, OSError)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_missing_table_is_created(mode: str, place: str) -> None:
    assert ld.write_dataset(ROWS, place, mode=mode).version == 1


def test_append_matches_columns_by_name_and_fills_nulls(table: ld.LanceDataset) -> None:
    made = ld.write_dataset(pa.table({"s": [{"q": 5}], "a": pa.array([4], pa.int32())}), table, mode="append")
    assert made.version == 2
    assert made.to_table().to_pylist()[3] == {"a": 4, "b": None, "s": {"p": None, "q": 5}}
    assert made.get_fragment(1).data_files()[0].fields == [0, 4]
    assert (table.version, table.latest_version) == (1, 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"a": [1], "z": [1]}), "'z' are not in the table"),
        (pa.table({"a": ["x"]}), "the wrong type"),
        (pa.table({}), "'a' are missing"),
        (pa.table({"a": pa.array([None], pa.int64())}), "null"),
        (pa.table({"a": [1], "b": [2]}), "the wrong type"),
    ],
)
def test_incompatible_rows_are_rejected_and_leave_nothing(
    rows: pa.Table, message: str, place: str, hasty: dict[str, str]
) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    ld.write_dataset(pa.table({"a": [1], "b": ["x"]}, schema=schema), place, storage_options=hasty)
    before = left(place)
    with pytest.raises(InvalidInputError, match=message):
        ld.write_dataset(rows, place, mode="append")
    assert left(place) == before


def test_overwrite_changes_the_schema_and_keeps_versions_and_settings(table: ld.LanceDataset) -> None:
    table.update_config({"k": "v"})
    table.update_metadata({"m": "w"})
    made = ld.write_dataset(pa.table({"z": [1.5]}).replace_schema_metadata({"x": "y"}), table, mode="overwrite")
    assert made.to_table().to_pydict() == {"z": [1.5]}
    assert (made.config(), made.metadata, made.schema_metadata) == ({"k": "v"}, {"m": "w"}, {"x": "y"})
    assert ld.dataset(table.uri, version=1).to_table() == ROWS
    assert ld.write_dataset(ROWS.slice(0, 0), made, mode="overwrite").fragment_ids() == []


def test_an_empty_table_has_no_fragments(place: str) -> None:
    made = ld.write_dataset(ROWS.slice(0, 0), place)
    assert (made.fragment_ids(), made.schema) == ([], ROWS.schema)
    assert ld.write_dataset(ROWS, made, mode="append").fragment_ids() == [0]


def test_files_are_split_by_rows(place: str) -> None:
    made = ld.write_dataset(pa.table({"a": range(10)}), place, max_rows_per_file=4)
    assert [f.count_rows() for f in made.get_fragments()] == [4, 4, 2]


def test_the_file_version_is_kept_by_append_and_changed_by_overwrite(place: str, hasty: dict[str, str]) -> None:
    made = ld.write_dataset(ROWS, place, data_storage_version="2.1", storage_options=hasty)
    assert made.data_storage_version == "2.1"
    made = ld.write_dataset(ROWS, made, mode="append")
    assert made.get_fragment(1).data_files()[0].file_minor_version == 1
    made = ld.write_dataset(ROWS, made, mode="append", data_storage_version="stable")
    assert (made.data_storage_version, made.get_fragment(2).data_files()[0].file_minor_version) == ("2.1", 2)
    assert ld.write_dataset(ROWS, made, mode="overwrite", data_storage_version="2.2").data_storage_version == "2.2"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "upsert"}, InvalidInputError, "unknown mode"),
        ({"data_storage_version": "2.3"}, UnsupportedError, "cannot be written"),
        ({"data_storage_version": "next"}, UnsupportedError, "cannot be written"),
        ({"data_storage_version": "9.9"}, InvalidInputError, "unknown version"),
        ({"max_rows_per_file": 0}, InvalidInputError, "max_rows_per_file"),
        ({"max_bytes_per_file": -1}, InvalidInputError, "max_bytes_per_file"),
        ({"progress": 3}, InvalidInputError, "progress"),
        ({"commit_lock": 3}, InvalidInputError, "commit_lock: expected a function"),
        ({"session": object()}, UnsupportedError, "session"),
        ({"namespace_client": object()}, InvalidInputError, "namespace_client and table_id: expected both"),
        ({"colour": "red"}, InvalidInputError, "unknown argument 'colour'"),
        ({"transaction_properties": {"a": 1}}, InvalidInputError, "not a string"),
        ({"target_bases": ["none"]}, InvalidInputError, "base path 'none' not found"),
        ({"target_all_bases": False}, InvalidInputError, "does not have base paths"),
        ({"auto_cleanup_options": {"interval": 1}}, InvalidInputError, "auto_cleanup_options"),
        ({"external_blob_mode": "lose"}, InvalidInputError, "external_blob_mode"),
    ],
)
def test_invalid_arguments_are_rejected(
    options: dict[str, Any], error: type[Exception], message: str, place: str
) -> None:
    with pytest.raises(error, match=message):
        ld.write_dataset(ROWS, place, **options)
    assert left(place) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"_rowid": [1]}), "reserved name"),
        (pa.table({"a.b": [1]}), "cannot contain a dot"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), "two fields have the same name"),
        (pa.table({"a": [1]}).replace_schema_metadata({b"k": b"\xff"}), "not valid UTF-8"),
        (3, "this type of data"),
    ],
)
def test_unsupported_data_is_rejected(data: Any, message: str, place: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ld.write_dataset(data, place)
    assert left(place) == []


@pytest.mark.parametrize("target", [None, "", 3])
def test_invalid_locations_are_rejected(target: Any) -> None:
    with pytest.raises(InvalidInputError, match="not a table path"):
        ld.write_dataset(ROWS, target)


def test_a_failing_source_leaves_nothing(table: ld.LanceDataset, place: str) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": list(range(100))})
        raise ZeroDivisionError

    before = left(place)
    for mode in ("append", "overwrite"):
        with pytest.raises(ZeroDivisionError):
            ld.write_dataset(failing(), table, mode=mode, schema=pa.schema({"a": pa.int64()}), max_rows_per_file=10)
    assert left(place) == before


def test_a_table_with_unknown_writer_flags_is_not_changed(table: ld.LanceDataset, monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "WRITABLE", 0)
    table.update_config  # noqa: B018  a handle that was opened before
    manifest = table.handle.snapshot.manifest.proto
    monkeypatch.setattr(type(table.handle.snapshot.manifest), "writer_flags", 1 << 20)
    before = left(table.uri)
    with pytest.raises(UnsupportedError, match="1048576"):
        ld.write_dataset(ROWS, table, mode="append")
    assert left(table.uri) == before
    assert manifest.version == 1


def test_messages_and_properties_are_stored(place: str) -> None:
    made = ld.write_dataset(ROWS, place, commit_message="why", transaction_properties={"who": "me"})
    transaction = made.get_transactions(1)[0]
    assert transaction is not None
    assert transaction.commit_message == "why"
    assert dict(transaction.transaction_properties or {})["who"] == "me"


def test_progress_is_reported(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[ld.WriteProgress] = []
    ld.write_dataset(pa.table({"a": range(10)}), place, max_rows_per_file=4, progress=told.append)
    assert (told[-1].rows, told[-1].files) == (10, 3)
    assert told[-1].bytes > 0
    ld.write_dataset(pa.table({"a": range(10)}), place, mode="append", progress=True)
    assert "10 rows" in capsys.readouterr().err


def test_files_rotate_over_base_paths(tmp_path: Path, place: str) -> None:
    bases = [
        ld.DatasetBasePath(str(tmp_path / "flat"), name="flat"),
        ld.DatasetBasePath(str(tmp_path / "root"), name="root", is_dataset_root=True),
    ]
    made = ld.write_dataset(
        pa.table({"a": range(4)}), place, initial_bases=bases, target_bases=["root", "flat"], max_rows_per_file=1
    )
    assert [f.data_files()[0].base_id for f in made.get_fragments()] == [2, 1, 2, 1]
    assert len(list((tmp_path / "flat").glob("*.lance"))) == len(list((tmp_path / "root/data").glob("*.lance"))) == 2
    made = ld.write_dataset(pa.table({"a": range(3)}), made, mode="append", target_all_bases=True, max_rows_per_file=1)
    assert [f.data_files()[0].base_id for f in made.get_fragments()][4:] == [None, 1, 2]
    assert made.to_table().to_pydict() == {"a": [0, 1, 2, 3, 0, 1, 2]}
    with pytest.raises(InvalidInputError, match="Cannot register new bases in Append mode"):
        ld.write_dataset(ROWS, made, mode="append", initial_bases=bases)


@pytest.mark.parametrize(
    "bases",
    [
        [ld.DatasetBasePath("/a", name="n"), ld.DatasetBasePath("/a", name="m")],
        [ld.DatasetBasePath("/a", name="n"), ld.DatasetBasePath("/b", name="n")],
        [ld.DatasetBasePath("/a", id=3), ld.DatasetBasePath("/b", id=3)],
        ["/a"],
        [ld.DatasetBasePath("")],
    ],
)
def test_conflicting_base_paths_are_rejected(bases: list[Any], place: str) -> None:
    with pytest.raises(InvalidInputError, match="base path"):
        ld.write_dataset(ROWS, place, initial_bases=bases)
    assert left(place) == []


def test_rows_for_a_concurrently_altered_column_are_not_added(table: ld.LanceDataset) -> None:
    before = set(left(table.uri))

    def changing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [4]})
        ld.dataset(table.uri).alter_columns({"path": "a", "data_type": pa.int16()})

    with pytest.raises(IncompatibleError, match="'a' was replaced concurrently"):
        ld.write_dataset(changing(), table, mode="append", schema=pa.schema({"a": pa.int64()}))
    assert ld.dataset(table.uri).count_rows() == 3
    assert len([name for name in set(left(table.uri)) - before if name.startswith("data")]) == 1


def test_appended_rows_follow_a_concurrent_rename(table: ld.LanceDataset) -> None:
    def renaming() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [4]})
        ld.dataset(table.uri).alter_columns({"path": "a", "name": "c"})

    made = ld.write_dataset(renaming(), table, mode="append", schema=pa.schema({"a": pa.int64()}))
    assert made.to_table(["c"]).to_pydict() == {"c": [1, 2, 3, 4]}


def test_appended_rows_lose_a_concurrently_dropped_column(table: ld.LanceDataset) -> None:
    def dropping() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [4], "b": ["z"]})
        ld.dataset(table.uri).drop_columns(["b"])

    schema = pa.schema({"a": pa.int64(), "b": pa.string()})
    made = ld.write_dataset(dropping(), table, mode="append", schema=schema)
    assert made.to_table(["a"]).to_pydict() == {"a": [1, 2, 3, 4]}


def test_overwrite_succeeds_after_other_changes(table: ld.LanceDataset) -> None:
    def changing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"z": [4]})
        ld.write_dataset(ROWS, table.uri, mode="overwrite")

    made = ld.write_dataset(changing(), table, mode="overwrite", schema=pa.schema({"z": pa.int64()}))
    assert (made.version, made.to_table().to_pydict()) == (3, {"z": [4]})


def test_time_spans_are_stored_as_strings() -> None:
    spans = {0: "0s", 5: "5s", 60: "1m", 3661: "1h 1m 1s", 176_461: "2days 1h 1m 1s", 31_557_600: "1year"}
    assert {seconds: settings._duration(seconds) for seconds in spans} == spans


def test_numpy_arrays_become_vectors(place: str) -> None:
    made = ld.write_dataset({"v": np.ones((3, 4), np.float32)}, place)
    assert made.schema.field("v").type == pa.list_(pa.float32(), 4)
    assert ld.write_dataset(pd.DataFrame({"v": [[1.0] * 4]}), made, mode="append").count_rows() == 4


def test_concurrent_first_appends_all_succeed(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    start = Barrier(4)

    def append(number: int) -> None:
        start.wait()
        ld.write_dataset(pa.table({"a": [number]}), path, mode="append")

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(append, number) for number in range(4)]:
            done.result()
    assert sorted(ld.dataset(path).to_table()["a"].to_pylist()) == [0, 1, 2, 3]
    assert len(list((path / "data").iterdir())) == 4


def test_an_append_that_races_with_another_schema_reports_the_conflict(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"

    def rows() -> Iterator[pa.RecordBatch]:
        ld.write_dataset(pa.table({"b": ["x"]}), path)
        yield pa.record_batch({"a": [1]})

    with pytest.raises(AlreadyExistsError):
        ld.write_dataset(rows(), path, pa.schema({"a": pa.int64()}), mode="append")
    assert len(list((path / "data").iterdir())) == 1


def test_a_bare_memory_uri_is_a_new_table_each_time() -> None:
    one, two = (ld.write_dataset(pa.table({"x": range(n)}), "memory://") for n in (1, 2))
    one.insert(pa.table({"x": [5, 6]}))
    assert [each.count_rows() for each in (one, two, ld.dataset(one.uri))] == [3, 2, 3]


def test_an_append_with_a_stale_hint_finds_the_newest_version(tmp_path: Path, hasty: dict[str, str]) -> None:
    place = str(tmp_path / "t.lance")
    stale = ld.write_dataset(ROWS, place, storage_options=hasty)
    stale.tags.create("first", 1)
    newest = stale
    for _ in range(3):
        newest = ld.write_dataset(ROWS, place, mode="append", storage_options=hasty)
    newest.cleanup_old_versions(timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False)
    assert [each["version"] for each in newest.versions()] == [1, 4]
    (tmp_path / "t.lance/_versions/latest_version_hint.json").write_text('{"version": 1}')
    after = ld.write_dataset(ROWS, stale, mode="append", storage_options=hasty)
    assert (after.version, after.count_rows()) == (5, 15)
