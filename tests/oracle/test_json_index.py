"""JSON path indexes: built by one library and asked by the other, and equal to a scan."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from lance.indices import IndexConfig
from support.json_conditions import VALUES, conditions

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError, NotIndexableError, WrongTypeError
from lance_duck.index.json_kind import JsonKind, problem_of
from lance_duck.wire.pb import index_pb2

TARGETS = ["btree", "bitmap", "zonemap"]


def table(documents: list[Any], first: int = 0) -> pa.Table:
    texts = [None if each is None else json.dumps(each) for each in documents]
    ids = range(first, first + len(documents))
    return pa.table({"id": pa.array(ids, pa.int64()), "j": pa.array(texts, pa.json_())})


def config(path: str = "$.a", target: str = "btree") -> IndexConfig:
    return IndexConfig("json", {"path": path, "target_index_type": target})


def document(value: Any) -> Any:
    return value if value is None or value == {} else {"a": None if value == "null" else value}


@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_an_index_gives_what_a_scan_gives(data: st.DataObject, tmp_path_factory: Any) -> None:
    check_random_conditions(data, tmp_path_factory)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_an_index_gives_what_a_scan_gives_at_length(data: st.DataObject, tmp_path_factory: Any) -> None:
    check_random_conditions(data, tmp_path_factory)


def check_random_conditions(data: st.DataObject, tmp_path_factory: Any) -> None:
    kind = data.draw(st.sampled_from(sorted(VALUES)))
    values = st.sampled_from([*VALUES[kind][0], "null", None, {}])
    documents = [document(v) for v in data.draw(st.lists(values, min_size=1, max_size=12))]
    later = [document(v) for v in data.draw(st.lists(values, max_size=4))]
    path = str(tmp_path_factory.mktemp("json") / "t.lance")
    writer = data.draw(st.sampled_from(["lance_duck", "pylance"]))
    target = data.draw(st.sampled_from(TARGETS))
    if kind == "float":
        documents = [{"a": 1.5}, *documents]
    lance.write_dataset(table(documents), path, max_rows_per_file=5, data_storage_version="2.1")
    (lance if writer == "pylance" else ld).dataset(path).create_scalar_index("j", config(target=target))  # type: ignore[attr-defined]
    if later:
        ld.write_dataset(table(later, len(documents)), path, mode="append")
    dataset = ld.dataset(path)
    if data.draw(st.booleans()):
        dataset.delete("id = 1")
    if data.draw(st.booleans()):
        dataset.optimize.compact_files()
    for _ in range(6):
        condition = data.draw(conditions(kind))
        scan = dataset.to_table(filter=condition, columns=["id"], use_scalar_index=False)
        assert dataset.to_table(filter=condition, columns=["id"]) == scan, (condition, documents, later)
        assert dataset.count_rows(condition) == scan.num_rows
    dataset.optimize.optimize_indices()
    condition = data.draw(conditions(kind))
    scan = dataset.to_table(filter=condition, columns=["id"], use_scalar_index=False)
    assert dataset.to_table(filter=condition, columns=["id"]) == scan, condition


@pytest.mark.parametrize("target", [*TARGETS, "ngram"])
def test_the_files_are_those_of_pylance_which_uses_them(target: str, tmp_path: Path) -> None:
    documents = [{"a": f"hello{i % 3}"} if i % 4 else {} for i in range(20)]
    files, kinds = [], []
    for library in (lance, ld):
        path = str(tmp_path / f"{library.__name__}.lance")
        lance.write_dataset(table(documents), path, data_storage_version="2.1")
        library.dataset(path).create_scalar_index("j", config("a", target))  # type: ignore[attr-defined]
        (segment,) = ld.dataset(path).handle.snapshot.indices
        message = index_pb2.JsonIndexDetails.FromString(segment.details)
        kinds.append((segment.details_type, message.path, message.target_details.type_url, segment.version))
        files.append(
            {f.name: lance.file.LanceFileReader(str(f)).read_all().to_table() for f in Path(path).glob("_indices/*/*")}
        )
    assert kinds[0] == kinds[1]
    if target != "ngram":  # the bytes of its row sets differ
        assert files[0] == files[1]
    theirs = lance.dataset(path)
    scanner = theirs.scanner(filter="json_get_string(j, 'a') = 'hello1'", columns=["id"])
    assert ("ScalarIndexQuery" in scanner.explain_plan()) == (
        target != "ngram"
    )  # pylance asks n-grams for contains only
    assert scanner.to_table()["id"].to_pylist() == [i for i in range(20) if i % 4 and i % 3 == 1]


def test_pylance_optimizes_and_compacts_our_index(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    ld.write_dataset(table([{"a": i % 5} for i in range(10)]), path, max_rows_per_file=5)
    ld.dataset(path).create_scalar_index("j", config())
    lance.write_dataset(table([{"a": 3}, {}], 10), path, mode="append")
    lance.dataset(path).optimize.optimize_indices()
    lance.dataset(path).optimize.compact_files()
    dataset = ld.dataset(path)
    scanner = dataset.scanner(filter="(j ->> '$.a')::BIGINT = 3", columns=["id"])
    assert "0 scanned" in scanner.explain_plan()
    assert scanner.to_table()["id"].to_pylist() == [3, 8, 10]


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"path": "$.a"}, WrongTypeError, "target_index_type"),
        ({"target_index_type": "btree"}, WrongTypeError, "parameter path"),
        ({"path": "$.a[*]", "target_index_type": "btree"}, InvalidInputError, "keys and positions"),
        ({"path": "$.a", "target_index_type": "inverted"}, LanceDuckError, "on the JSON column itself"),
        ({"path": "$.a", "target_index_type": "fm"}, LanceDuckError, "NGRAM"),
        ({"path": "$.a", "target_index_type": "bloomfilter"}, LanceDuckError, "choose BTREE"),
        ({"path": "$.a", "target_index_type": "btree", "rows": 5}, WrongTypeError, "rows"),
        (
            {"path": "$.a", "target_index_type": "zonemap", "target_index_parameters": "{"},
            InvalidInputError,
            "JSON object",
        ),
    ],
)
def test_wrong_parameters_are_refused(
    parameters: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    dataset = ld.write_dataset(table([{"a": 1}]), tmp_path / "t.lance")
    with pytest.raises(error, match=words):
        dataset.create_scalar_index("j", IndexConfig("json", parameters))
    with pytest.raises(NotIndexableError, match="column 'id'"):
        dataset.create_scalar_index("id", config())
    assert dataset.version == 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, "x"], "expected an integer.*found a string, in the row with _rowid 1"),
        ([1, 1.5], "found a number with a fraction, in the row with _rowid 1"),
        ([None, {"b": 1}], "found an object"),
        ([[1]], "found an array"),
        ([True, 1], "found an integer"),
    ],
)
def test_values_of_several_types_are_refused_with_row_and_path(values: list[Any], words: str, tmp_path: Path) -> None:
    dataset = ld.write_dataset(table([{"a": value} for value in values]), tmp_path / "t.lance")
    with pytest.raises(NotIndexableError, match=rf"at '\$.a'.*{words}"):
        dataset.create_scalar_index("j", config())


def test_a_table_with_stable_row_ids_has_bitmaps_but_no_trees(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset = ld.write_dataset(
        table([{"a": i % 3} for i in range(9)]), path, enable_stable_row_ids=True, max_rows_per_file=3
    )
    with pytest.raises(NotIndexableError, match="stable row ids"):
        dataset.create_scalar_index("j", config())
    dataset.create_scalar_index("j", config(target="bitmap"))
    dataset.update({"id": "id + 100"}, where="id = 4")
    dataset.optimize.compact_files()
    scanner = dataset.scanner(filter="(j ->> '$.a')::BIGINT = 1", columns=["id"])
    assert "ScalarIndexQuery" in scanner.explain_plan()
    assert sorted(scanner.to_table()["id"].to_pylist()) == [1, 7, 104]


def test_rows_of_another_type_are_scanned_and_keep_their_errors(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset = ld.write_dataset(table([{"a": 1}, {"a": 2}]), path)
    dataset.create_scalar_index("j", config())
    dataset = ld.write_dataset(table([{"a": "x"}], 2), path, mode="append")
    condition = "CAST(j ->> '$.a' AS BIGINT) = 1"
    for use in (True, False):
        with pytest.raises(InvalidInputError, match="Could not convert"):
            dataset.to_table(filter=condition, use_scalar_index=use)
    with pytest.warns(ld.IndexWarning, match="index 'j_idx' was not changed.*found a string"):
        dataset.optimize.optimize_indices()
    assert dataset.to_table(filter="TRY_CAST(j ->> '$.a' AS BIGINT) = 1")["id"].to_pylist() == [0]


def test_an_index_without_values_gets_the_type_of_later_ones(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset = ld.write_dataset(table([{}, {"a": None}]), path)
    dataset.create_scalar_index("j", config())
    dataset = ld.write_dataset(table([{"a": 7}], 2), path, mode="append")
    dataset.optimize.optimize_indices()
    scanner = dataset.scanner(filter="(j ->> '$.a')::BIGINT = 7", columns=["id"])
    assert "0 scanned" in scanner.explain_plan()
    assert scanner.to_table()["id"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("(j ->> '$.a')::INTEGER = 1", "has values of type int64, not int32"),
        ("j ->> '$.a' = '1'", "has values of type int64, not string"),
        ("(j ->> '$.b')::BIGINT = 1", r"no JSON index on j at \$.b for int64; index 'j_idx' is over '\$.a'"),
        ("(j ->> '$.a' || '')::BIGINT = 1", "is evaluated by DuckDB"),
        ("j ->> '$.a'::VARCHAR = '1'", "is evaluated by DuckDB"),
        ("json_get_int(j, '0') = 1", "is evaluated by DuckDB"),
    ],
)
def test_the_plan_says_why_an_index_is_not_used(condition: str, reason: str, tmp_path: Path) -> None:
    dataset = ld.write_dataset(table([{"a": 1}, {"a": 2}]), tmp_path / "t.lance")
    dataset.create_scalar_index("j", config())
    plan = dataset.scanner(filter=condition).explain_plan()
    assert "ScalarIndexQuery" not in plan
    assert re.search(f"without an index: .*{reason}", plan), plan


def test_descriptions_show_kind_and_path(tmp_path: Path) -> None:
    dataset = ld.write_dataset(table([{"a": 1}]), tmp_path / "t.lance")
    dataset.create_scalar_index("j", config())
    dataset.create_scalar_index("j", config("$.b"))
    first, second = dataset.describe_indices()
    assert (first.index_type, first.details["path"], second.name) == ("Json", "$.a", "j_idx_2")
    assert first.details["target_index_type"] == "BTree"
    assert "j at $.a" in dataset.describe_indices()._repr_html_()
    with ld.connect(tmp_path) as con:
        rows = con.execute("SELECT index_type, details->>'path' FROM lance_indexes('t')").fetchall()
    assert rows == [("Json", "$.a"), ("Json", "$.b")]
    dataset.drop_columns(["j"])
    assert dataset.list_indices() == []


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        (b"\xff", "its details are damaged"),
        (b"\n\x05$.a[*", r"JSON path '\$.a\[\*' is not supported"),
        (b"\n\x01a\x12\x0c\n\x0a/x.Strange", "are not supported"),
    ],
)
def test_details_that_cannot_be_read_are_ignored_with_the_reason(details: bytes, reason: str, tmp_path: Path) -> None:
    assert JsonKind.of(details) is None
    assert re.search(reason, problem_of(details))


def test_a_segment_with_another_file_is_scanned_with_a_warning(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(table([{"a": 1}, {"a": 2}]), path, data_storage_version="2.1")
    lance.dataset(path).create_scalar_index("j", config())
    (file,) = Path(path).glob("_indices/*/page_lookup.lance")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.warns(ld.IndexWarning, match="cannot be used, so its rows are scanned"):
        found = ld.dataset(path).to_table(filter="(j ->> '$.a')::BIGINT = 2")
    assert found["id"].to_pylist() == [1]
