from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.acero as ac
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.fragment import DataFile, DeletionFile
from lance_duck.store import local

TABLES = Path(__file__).parents[1] / "golden" / "tables"


def table(name: str, **options: Any) -> ld.LanceDataset:
    return ld.dataset(TABLES / f"{name}.lance", **options)


@pytest.fixture
def numbers() -> ld.LanceDataset:
    return table("evolved")


def test_a_dataset_is_a_pyarrow_dataset(numbers: ld.LanceDataset) -> None:
    assert isinstance(numbers, pads.Dataset)
    assert isinstance(numbers.scanner(), pads.Scanner)
    assert all(isinstance(fragment, pads.Fragment) for fragment in numbers.get_fragments())


def test_versions_tags_and_time() -> None:
    history = table("history")
    listed = history.versions()
    assert [entry["version"] for entry in listed] == list(range(1, 7))
    assert set(listed[0]) == {"version", "timestamp", "metadata"}
    assert set(history.tags.list()) == {"first", "stable"}
    first = history.checkout_version("first")
    assert first.version == history.tags.get_version("first")
    assert first.latest_version == 6
    assert table("history", version="stable").version == history.tags.get_version("stable")
    assert history.checkout_version(2).version == 2
    assert table("history", asof=listed[2]["timestamp"]).version == 2
    first.checkout_latest()
    assert first.version == 6
    assert len(history.get_transactions()) == 6
    assert history.read_transaction(6) == history.get_transactions(1)[0]


def test_one_version_and_the_numbers_of_all() -> None:
    history = table("history")
    assert history.get_version() == history.versions()[-1]
    assert history.version_refs() == [{"version": number} for number in range(1, 7)]
    assert history.base_paths() == {}


def test_tags_in_the_order_of_their_versions() -> None:
    tags = table("history").tags
    assert tags.list_ordered("asc") == sorted(tags.list().items(), key=lambda tag: tag[1]["version"])
    assert tags.list_ordered() == tags.list_ordered("desc") == tags.list_ordered("asc")[::-1]
    with pytest.raises(ld.InvalidInputError, match="asc or desc"):
        tags.list_ordered("up")


def test_branches_are_listed_and_opened() -> None:
    branched = table("branched")
    assert set(branched.branches.list()) == {"side"}
    assert branched.branches.list_ordered() == list(branched.branches.list().items())
    side = branched.checkout_version(("side", None))
    assert side.uri != branched.uri
    assert side.count_rows() == table("branched", version=("side", None)).count_rows()
    copied = pickle.loads(pickle.dumps(side))
    assert (copied.uri, copied.version) == (side.uri, side.version)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ld.dataset("/no/such/table"),
        lambda: table("history", version=99),
        lambda: table("history", version="no such tag"),
        lambda: table("history", version=1, asof="2030-01-01"),
        lambda: table("history").checkout_version(99),
        lambda: table("history").tags.get_version("no such tag"),
        lambda: table("history").take([99]),
        lambda: table("history").take([-1]),
        lambda: table("history").slice(3, 2),
        lambda: table("history").sample(10**6),
        lambda: table("history").to_table(columns=["nope"]),
        lambda: table("history").to_table(nearest={"column": "id", "q": [1], "k": 1}),
        lambda: table("history").sort_by("nope"),
        lambda: ld.LanceFragment(table("history"), 99),
        lambda: ld.FragmentMetadata.from_json("[]"),
        lambda: ld.LanceScanner.from_dataset(table("history")),
    ],
)
def test_user_mistakes_raise_lance_duck_value_errors(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        wrong()
    assert isinstance(caught.value, ld.LanceDuckError)


def test_counting_and_describing_open_no_data_files(monkeypatch: pytest.MonkeyPatch) -> None:
    rowids = table("rowids")

    def refuse(*_: object) -> None:
        raise AssertionError("a data file was opened")

    monkeypatch.setattr(local, "MappedFile", refuse)
    assert len(rowids) == rowids.count_rows() == rowids.rows() == 564
    text = rowids._repr_html_()
    assert "564" in text
    assert "int64" in text
    assert rowids.schema.names == ["id", "x"]
    assert [fragment.count_rows() for fragment in rowids.get_fragments()] == [
        fragment.metadata.num_rows for fragment in rowids.get_fragments()
    ]


def test_html_escapes_table_content() -> None:
    shown = ld.dataset(TABLES / "evolved.lance")
    shown.handle.uri = "<script>"
    assert "<script>" not in shown._repr_html_()


def test_html_shows_index_coverage_and_readable_sizes(tmp_path: Path) -> None:
    made = ld.write_dataset({"id": range(3000)}, tmp_path / "t.lance")
    made.create_scalar_index("id", "BTREE")
    made.insert({"id": [3000]})
    made.delete("id = 1")
    text = made._repr_html_()
    assert re.search(r"<td>id_idx</td><td>BTree</td><td>id</td><td>2,999 of 3,000</td><td>[0-9.]+ KiB</td>", text)
    assert "2, 1 with deleted rows" in text
    assert re.search(r"<th>data files</th><td>2, [0-9.]+ KiB</td>", text)


def test_rows_are_taken_by_position_id_and_at_random() -> None:
    rowids = table("rowids")
    whole = rowids.to_table(with_row_id=True)
    places = [563, 0, 7, 7]
    assert rowids.take(places).equals(whole.take(places).drop_columns(["_rowid"]).combine_chunks())
    ids = whole["_rowid"].take(places)
    assert rowids.take_rows(ids).equals(rowids.take(places))
    assert rowids.slice(3, 6).equals(whole.slice(3, 3).drop_columns(["_rowid"]))
    assert rowids.head(2, columns=["x"]).num_rows == 2
    sample = rowids.sample(20, columns=["id"])["id"].to_pylist()
    assert len(set(sample)) == 20
    assert set(sample) <= set(whole["id"].to_pylist())


def test_copies_read_the_same_version(numbers: ld.LanceDataset) -> None:
    expected = numbers.to_table()
    for duplicate in (pickle.loads(pickle.dumps(numbers)), copy.copy(numbers), copy.deepcopy(numbers)):
        assert duplicate.version == numbers.version
        assert duplicate.to_table().equals(expected)
    filtered = numbers.filter(pc.field("id") > 20).filter("later IS NULL OR later LIKE '%a%'")
    assert pickle.loads(pickle.dumps(filtered)).to_table().equals(filtered.to_table())


def test_a_filtered_dataset_has_only_its_rows(numbers: ld.LanceDataset) -> None:
    few = numbers.filter(pc.field("id") >= 35)
    expected = numbers.to_table(filter="id >= 35")
    assert few.to_table().equals(expected)
    assert few.count_rows() == len(few) == expected.num_rows
    assert few.count_rows("id < 37") == 2
    assert few.take([1]).equals(expected.take([1]))
    assert few.head(1).equals(expected.slice(0, 1))
    assert len(numbers) > len(few)


def test_fragments_without_matching_rows_are_skipped(numbers: ld.LanceDataset) -> None:
    first, *others = numbers.get_fragments()
    low = first.to_table(columns=["id"])["id"].to_pylist()
    assert [f.fragment_id for f in numbers.get_fragments(pc.field("id") == low[0])] == [first.fragment_id]
    assert [f.fragment_id for f in numbers.get_fragments(f"id not in ({', '.join(map(str, low))})")] == [
        other.fragment_id for other in others
    ]
    assert numbers.get_fragments("id < 0") == []
    assert numbers.get_fragment(99) is None


def test_fragment_rows_equal_those_of_the_table() -> None:
    rowids = table("rowids")
    fragments = rowids.get_fragments()
    assert [f.fragment_id for f in fragments] == rowids.fragment_ids()
    parts = [f.to_table(with_row_id=True) for f in fragments]
    assert pa.concat_tables(parts).equals(rowids.to_table(with_row_id=True))
    for fragment, part in zip(fragments, parts, strict=True):
        assert fragment.count_rows() == len(fragment) == part.num_rows
        assert fragment.count_rows("id % 2 = 0") == sum(i % 2 == 0 for i in part["id"].to_pylist())
        assert fragment.physical_rows - fragment.num_deletions == part.num_rows
        places = [part.num_rows - 1, 0]
        assert fragment.take(places, ["id"])["id"].to_pylist() == part["id"].take(places).to_pylist()
        assert fragment.head(3, columns=["x"]).equals(part.select(["x"]).slice(0, 3))
        assert pa.concat_batches(list(fragment.to_batches(columns=["id"])))["id"].to_pylist() == part["id"].to_pylist()
        assert fragment.schema == rowids.schema
        assert fragment.partition_expression.equals(pc.scalar(True))
        assert pickle.loads(pickle.dumps(fragment)).to_table().num_rows == part.num_rows
        assert pa.table(fragment).num_rows == part.num_rows


def test_physical_schema_names_the_columns_that_the_files_hold() -> None:
    evolved = table("evolved")
    for fragment in evolved.get_fragments():
        held = {field for file in fragment.data_files() for field in file.fields}
        expected = [
            field.name for field in evolved.handle.snapshot.schema.fields if held & {f.id for f in field.walk()}
        ]
        assert fragment.physical_schema.names == expected
        assert set(fragment.physical_schema.names) <= set(evolved.schema.names)


@pytest.mark.parametrize("name", ["rowids", "deletions", "evolved", "clone"])
def test_fragment_metadata_round_trips_through_json(name: str) -> None:
    for fragment in table(name).get_fragments():
        metadata = fragment.metadata
        assert ld.FragmentMetadata.from_json(json.dumps(metadata.to_json())) == metadata
        assert ld.FragmentMetadata.from_json(metadata.to_json()) == metadata
        assert pickle.loads(pickle.dumps(metadata)) == metadata
        assert metadata.num_rows == fragment.count_rows()
        assert all(isinstance(file, DataFile) for file in metadata.files)
        assert (metadata.deletion_file is None) == (fragment.deletion_file() is None) == (fragment.num_deletions == 0)
        assert metadata.deletion_file is None or isinstance(metadata.deletion_file, DeletionFile)


def test_batches_are_tagged_with_their_fragment(numbers: ld.LanceDataset) -> None:
    tagged = list(numbers.scanner(columns=["id"]).scan_batches())
    assert [t.fragment.fragment_id for t in tagged] == numbers.fragment_ids()
    assert sum(t.record_batch.num_rows for t in tagged) == len(numbers)
    limited = list(numbers.scanner(columns=["id"], limit=3).scan_batches())
    assert [(t.record_batch.num_rows, t.fragment) for t in limited] == [(3, None)]


def test_a_scanner_can_be_read_repeatedly(numbers: ld.LanceDataset) -> None:
    scanner = numbers.scanner(columns=["renamed"], filter="id < 10")
    assert scanner.projected_schema.names == ["renamed"]
    assert scanner.dataset_schema == numbers.schema
    assert scanner.to_table().equals(scanner.to_table())
    assert scanner.count_rows() == 10
    assert scanner.head(3).equals(scanner.to_table().slice(0, 3))
    assert scanner.head(0).num_rows == 0
    assert scanner.take([9, 0]).equals(scanner.to_table().take([9, 0]))
    assert pa.table(scanner).num_rows == 10


def test_a_plan_shows_the_expected_reads(numbers: ld.LanceDataset) -> None:
    text = numbers.scanner(columns=["renamed"], filter="id < 10", limit=5).explain_plan()
    assert "read first, for the filter: id" in text
    assert "read then, for the rows left: renamed" in text
    assert "limit: 5" in text
    assert "by DuckDB" in numbers.scanner(filter="later LIKE '%a'").explain_plan()
    assert "by pyarrow" in numbers.scanner(filter=pc.field("id") < 3).explain_plan(verbose=True)
    assert "5 rows" in numbers.scanner(limit=5).analyze_plan()


def test_statistics_describe_the_dataset() -> None:
    rowids = table("rowids")
    assert rowids.stats.dataset_stats() == {"num_deleted_rows": 1, "num_fragments": 2, "num_small_files": 2}
    fields = rowids.stats.data_stats().fields
    assert [field.id for field in fields] == [field.id for field in rowids.handle.snapshot.schema.walk()]
    assert all(field.bytes_on_disk > 0 for field in fields)


def test_dataset_properties_are_exposed() -> None:
    rowids = table("rowids")
    assert rowids.has_stable_row_ids
    assert rowids.data_storage_version == "2.2"
    assert rowids.max_field_id == max(field.id for field in rowids.handle.snapshot.schema.walk())
    assert isinstance(rowids.config(), dict)
    assert isinstance(rowids.metadata, dict)
    assert isinstance(rowids.schema_metadata, dict)
    assert rowids.uri == str(TABLES / "rowids.lance")


def test_pyarrow_joins_sorts_and_writes(numbers: ld.LanceDataset, tmp_path: Path) -> None:
    other = pads.dataset(pa.table({"id": [1, 2], "n": ["one", "two"]}))
    words = table("mixed_files")
    assert words.join(other, "id", join_type="inner").count_rows() == 6
    with pytest.raises(ld.InvalidInputError, match="struct"):
        numbers.join(other, "id")
    assert numbers.sort_by([("id", "descending")]).head(1)["id"].to_pylist() == [41]
    deletions, int32 = table("deletions"), pa.table({"id": pa.array([0, 5], pa.int32()), "n": ["a", "b"]})
    assert deletions.join_asof(pads.dataset(int32), on="id", by=[], tolerance=0).count_rows() == len(deletions)
    pads.write_dataset(numbers, tmp_path / "whole", format="parquet")
    pads.write_dataset(numbers.scanner(filter="id < 5"), tmp_path / "few", format="parquet")
    assert pads.dataset(tmp_path / "whole").to_table().sort_by("id").equals(numbers.to_table().sort_by("id"))
    assert pads.dataset(tmp_path / "few").count_rows() == 5


def test_pyarrow_below_its_python_methods_reads_the_same_rows(numbers: ld.LanceDataset) -> None:
    few = pads.Scanner.from_dataset(numbers, columns=["renamed"], filter=pads.field("id") < 5).to_table()
    assert few.equals(numbers.to_table(columns=["renamed"], filter="id < 5"))
    assert pads.dataset([numbers, numbers]).count_rows() == 2 * len(numbers)
    plan = ac.Declaration("scan", ac.ScanNodeOptions(numbers.filter("id < 5")))
    assert plan.to_table().num_rows == 5


def test_other_libraries_accept_a_dataset(numbers: ld.LanceDataset) -> None:
    expected = numbers.to_table(filter="id < 5", columns=["renamed"])["renamed"].to_pylist()
    polars = pytest.importorskip("polars")
    lazy = polars.scan_pyarrow_dataset(numbers).filter(polars.col("id") < 5).select("renamed")
    assert lazy.collect()["renamed"].to_list() == expected
    assert numbers.to_pandas(filter="id < 5")["renamed"].tolist() == expected
    assert pa.RecordBatchReader.from_stream(numbers).read_all().num_rows == len(numbers)


def test_read_settings_are_accepted_and_unknown_ones_rejected() -> None:
    place = str(TABLES / "rowids.lance")
    plain = ld.dataset(place).to_table()
    assert ld.dataset(place, block_size=4096, read_params={"cache_repetition_index": True}).to_table() == plain
    assert ld.dataset(place, metadata_cache_size_bytes=0, default_scan_options=None, session=None).to_table() == plain
    with pytest.raises(UnsupportedError, match="session is not supported"):
        ld.dataset(place, session=object())
    with pytest.raises(ld.WrongTypeError, match="commit_lock: expected a function"):
        ld.dataset(place, commit_lock=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="unknown argument 'colour'"):
        ld.dataset(place, colour="red")


def test_default_scan_options_apply_to_every_scan(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    ld.write_dataset(pa.table({"a": range(6)}), uri)
    dataset = ld.dataset(uri, default_scan_options={"with_row_id": True, "batch_size": 4})
    for each in (dataset, pickle.loads(pickle.dumps(dataset)), dataset.checkout_version(1)):
        assert each.schema.names == each.to_table().schema.names == ["a", "_rowid"]
    assert [batch.num_rows for batch in dataset.to_batches()] == [4, 2]
    assert [batch.num_rows for batch in dataset.to_batches(batch_size=6)] == [6]
    assert dataset.to_table(with_row_id=False).schema.names == ["a"]
    assert dataset.filter("a > 3").to_table()["_rowid"].to_pylist() == [4, 5]
    with ld.connect({"t": dataset}) as con:
        assert con.sql("SELECT a FROM t WHERE _rowid = 5").fetchall() == [(5,)]


def test_default_options_cannot_filter_rows(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    ld.write_dataset(pa.table({"a": range(6)}), uri)
    with pytest.raises(UnsupportedError, match=r"default_scan_options: filter is not supported; dataset\.filter"):
        ld.dataset(uri, default_scan_options={"filter": "a > 1"})
    with pytest.raises(ld.WrongTypeError, match="unknown option 'batch'"):
        ld.dataset(uri, default_scan_options={"batch": 3})


@pytest.fixture
def two_columns(tmp_path: Path) -> ld.LanceDataset:
    rows = pa.table({"id": range(60), "city": [f"city {place % 5}" for place in range(60)]})
    return ld.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=20)


def test_an_equal_schema_is_accepted(two_columns: ld.LanceDataset) -> None:
    fragment = two_columns.get_fragments()[0]
    equal = pa.schema([field.with_metadata({"a": "b"}) for field in two_columns.schema], {"c": "d"})
    assert fragment.scanner(equal, columns=["id"]).to_table().num_rows == 20
    assert fragment.to_table(schema=equal) == fragment.to_table()
    assert next(fragment.to_batches(equal)).num_rows == 20


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda schema: schema.remove(0),
            UnsupportedError,
            "expected pyarrow.Field<id: int64>, found pyarrow.Field<city",
        ),
        (lambda schema: schema.append(pa.field("z", pa.int8())), UnsupportedError, "expected no further columns"),
        (lambda schema: schema.set(0, pa.field("id", pa.int32())), UnsupportedError, "id: int32"),
        (lambda schema: ["id"], InvalidInputError, "expected a pyarrow.Schema, found list"),
    ],
    ids=["fewer columns", "more columns", "another type", "no schema"],
)
def test_a_different_schema_is_rejected(
    two_columns: ld.LanceDataset, change: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        two_columns.get_fragments()[0].scanner(change(two_columns.schema))
