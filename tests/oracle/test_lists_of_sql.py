"""Lists created in SQL have pylance's item names, so pylance can append, merge and use their indexes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import UnsupportedError

NESTED = """
    SELECT 1::BIGINT AS id, ['a'] AS tags, [{'x': [1], 'y': MAP {'k': [['b']]}}] AS l,
    [[1, 2]::FLOAT[2]] AS vectors, {'m': MAP {[1]: [2]}} AS s
"""


def names_below(type_: pa.DataType) -> set[str]:
    """Return the item names of all lists in a type."""
    if pa.types.is_map(type_):
        return names_below(type_.key_type) | names_below(type_.item_type)
    if pa.types.is_struct(type_):
        return set().union(*(names_below(field.type) for field in type_))
    if hasattr(type_, "value_field"):
        return {type_.value_field.name} | names_below(type_.value_field.type)
    return set()


def items_of(path: Path) -> set[str]:
    return set().union(*(names_below(field.type) for field in lance.dataset(path).schema))


@pytest.mark.parametrize(
    "statements",
    [
        (f"CREATE TABLE lance.t AS {NESTED}",),
        ("CREATE TABLE lance.t (id BIGINT, l STRUCT(x INTEGER[], y MAP(VARCHAR, VARCHAR[][]))[])",),
        ("CREATE TABLE lance.t AS SELECT 1 AS id", "ALTER TABLE lance.t ADD COLUMN l STRUCT(x VARCHAR[])[]"),
        ("CREATE TABLE lance.t AS SELECT 1 AS id", "ALTER TABLE lance.t ADD COLUMN l VARCHAR[][] DEFAULT [['a']]"),
        ("CREATE TABLE lance.t AS SELECT [1] AS l", "ALTER TABLE lance.t ALTER l TYPE BIGINT[]"),
        (f"COPY ({NESTED}) TO 't.lance' (FORMAT lance)",),
        (f"CREATE TABLE lance.t AS {NESTED}", f"INSERT INTO lance.t {NESTED}", "UPDATE lance.t SET tags = ['b', 'c']"),
    ],
)
def test_items_of_lists_are_named_item(tmp_path: Path, statements: tuple[str, ...]) -> None:
    with ld.connect(tmp_path) as connection:
        for statement in statements:
            connection.execute(statement.replace("'t.lance'", f"'{tmp_path}/t.lance'"))
    assert items_of(tmp_path / "t.lance") == {"item"}


@pytest.mark.parametrize("as_table", [False, True], ids=["relation", "Arrow table of DuckDB"])
def test_items_of_written_relations_are_named_item(tmp_path: Path, as_table: bool) -> None:
    with duckdb.connect() as connection:
        rows = connection.sql(NESTED)
        ld.write_dataset(rows.to_arrow_table() if as_table else rows, tmp_path / "t.lance")
    assert items_of(tmp_path / "t.lance") == {"item"}


def test_structs_in_arrays_have_items_named_item(tmp_path: Path) -> None:
    with ld.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE lance.t AS SELECT [{'x': [1]}]::STRUCT(x INTEGER[])[1] AS a")
    assert items_of(tmp_path / "t.lance") == {"item"}
    same = pa.table({"a": pa.array([[{"x": [2]}]], pa.list_(pa.struct([("x", pa.list_(pa.int32()))]), 1))})
    lance.write_dataset(same, tmp_path / "t.lance", mode="append")
    assert ld.dataset(tmp_path / "t.lance").to_table()["a"].to_pylist() == [[{"x": [1]}], [{"x": [2]}]]


def test_pylance_appends_and_merges_into_tables_of_sql(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    with ld.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE lance.t AS SELECT 1::BIGINT AS id, ['a'] AS tags, [{'x': ['b']}] AS l")
        new = pa.table({"id": [2], "tags": [["c"]], "l": [[{"x": ["d"]}]]})
        lance.write_dataset(new, path, mode="append")
        merge = lance.dataset(path).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pa.table({"id": [2, 3], "tags": [["e"], None], "l": [[{"x": ["f"]}], []]}))
        rows = connection.execute("SELECT id, tags, l FROM lance.t ORDER BY id").fetchall()
    assert rows == [(1, ["a"], [{"x": ["b"]}]), (2, ["e"], [{"x": ["f"]}]), (3, None, [])]


def test_pylance_uses_the_label_list_index_of_a_table_created_in_sql(tmp_path: Path) -> None:
    with ld.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE lance.t AS SELECT i AS id, ['x' || i % 9] AS tags FROM range(900) r(i)")
        connection.execute("CREATE INDEX tag ON lance.t USING LABEL_LIST (tags)")
    scanner = lance.dataset(tmp_path / "t.lance").scanner(filter="array_has_any(tags, ['x4'])")
    assert "ScalarIndexQuery" in scanner.explain_plan(True)
    assert scanner.to_table()["id"].to_pylist() == list(range(4, 900, 9))


@pytest.mark.parametrize("name", ["element", "l"])
def test_writes_keep_the_existing_list_item_names(tmp_path: Path, name: str) -> None:
    def column(value: str) -> pa.Table:
        item = pa.field(name, pa.struct([("x", pa.list_(pa.field(name, pa.string())))]))
        return pa.table({"a": pa.array([[{"x": [value]}]], pa.list_(item))})

    path = tmp_path / "t.lance"
    lance.write_dataset(column("1"), path)
    with ld.connect(tmp_path) as connection:
        connection.execute("INSERT INTO lance.t VALUES ([{'x': ['2']}])")
        connection.execute("INSERT INTO lance.t SELECT [{'x': ['3']}]")
        connection.execute("UPDATE lance.t SET a = [{'x': ['4']}] WHERE a[1].x[1] = '2'")
    ld.write_dataset(pa.table({"a": [[{"x": ["5"]}]]}), path, mode="append")
    assert items_of(path) == {name}
    lance.write_dataset(column("6"), path, mode="append")
    assert sorted(row[0]["x"][0] for row in ld.dataset(path).to_table()["a"].to_pylist()) == ["1", "3", "4", "5", "6"]


MIXED = {
    "list in array": pa.list_(pa.struct([("a", pa.list_(pa.int32()))]), 2),
    "map in array": pa.list_(pa.struct([("a", pa.map_(pa.string(), pa.int32()))]), 3),
    "deep": pa.list_(pa.struct([("a", pa.struct([("b", pa.large_list(pa.string()))]))]), 2),
    "array in list": pa.list_(pa.list_(pa.struct([("a", pa.int32())]), 2)),
    "array in map": pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.int32())]), 2)),
}


@pytest.mark.parametrize("name", MIXED)
def test_lists_mixed_with_arrays_of_structs_are_rejected_before_writing(tmp_path: Path, name: str) -> None:
    table = pa.table({"id": [1], "x": pa.nulls(1, MIXED[name])})
    message = r"column 'x[.a-z]*': one column cannot nest both .*; cast the fixed-size lists"
    with pytest.raises(UnsupportedError, match=message):
        ld.write_dataset(table, tmp_path / "t.lance")
    lance.write_dataset(table.slice(1), tmp_path / "t.lance")
    with pytest.raises(UnsupportedError, match=message):
        ld.write_dataset(table, tmp_path / "t.lance", mode="append")
    assert ld.dataset(tmp_path / "t.lance").count_rows() == 0


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE lance.t AS SELECT [{'a': [1]}, {'a': [2]}]::STRUCT(a INTEGER[])[2] AS x",
        "CREATE TABLE lance.t (x STRUCT(a INTEGER)[2][])",
        "ALTER TABLE lance.other ADD COLUMN x STRUCT(a INTEGER[])[2]",
    ],
)
def test_statements_refuse_lists_mixed_with_arrays_of_structs(tmp_path: Path, statement: str) -> None:
    with ld.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE lance.other AS SELECT 1 AS i")
        with pytest.raises(
            UnsupportedError,
            match=r"column 'x[.a-z]*': one column cannot nest both .*lists of structs",
        ):
            connection.execute(statement)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


OLD = pa.list_(pa.field("l", pa.string()))
OLD_COLUMNS = {
    "id": pa.int64(),
    "tags": OLD,
    "deep": pa.list_(pa.field("l", pa.list_(pa.field("", pa.int32())))),
    "s": pa.struct([("l", OLD), ("x", pa.int32())]),
    "rows": pa.list_(pa.field("l", pa.struct([("l", pa.int32()), ("m", pa.large_list(pa.field("l", pa.int32())))]))),
}
OLD_ROWS = [
    {"id": 1, "tags": ["a", "b"], "deep": [[1], []], "s": {"l": ["q"], "x": 1}, "rows": [{"l": 1, "m": [3]}]},
    {"id": 2, "tags": ["b"], "deep": [], "s": {"l": [], "x": 2}, "rows": []},
    {"id": 3, "tags": None, "deep": None, "s": None, "rows": [None]},
]
HAS_B = "array_has(tags, 'b')"


def old_table(path: Path, version: str) -> dict[str, pa.DataType]:
    """Write a table with the item names of older versions of this package, and an index. Returns its columns."""
    columns = dict(OLD_COLUMNS)
    if version == "2.2":
        columns["m"] = pa.map_(pa.string(), OLD)
    rows = [{**row, "m": [("k", ["v"])]} for row in (OLD_ROWS if version in ("2.1", "2.2") else OLD_ROWS[:2])]
    data = pa.Table.from_pylist(rows, schema=pa.schema(columns.items()))
    lance.write_dataset(data, path, data_storage_version=version)
    ld.dataset(path).create_scalar_index("tags", "LABEL_LIST")  # in 0.1 files, pylance only reads items named "item"
    return columns


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
def test_a_repair_renames_items_without_rewriting_data(tmp_path: Path, version: str) -> None:
    path = tmp_path / "t"
    columns = old_table(path, version)
    dataset = ld.dataset(path)
    dataset.tags.create("before", dataset.version)
    before, files = dataset.to_table(), [fragment.data_files() for fragment in dataset.get_fragments()]
    found = [problem for problem in dataset.find_problems() if not problem.is_damage]
    assert [problem.where for problem in found] == [f"column {name!r}" for name in columns if name != "id"]
    dataset.validate()
    assert dataset.repair(dry_run=True).renamed == tuple(name for name in columns if name != "id")
    assert items_of(path) >= {"l"}
    dataset.repair()
    assert (dataset.version, items_of(path)) == (3, {"item"})
    assert [fragment.data_files() for fragment in dataset.get_fragments()] == files
    assert dataset.to_table().to_pylist() == before.to_pylist() == lance.dataset(path).to_table().to_pylist()
    assert (dataset.find_problems(), dataset.repair().renamed, dataset.version) == ([], (), 3)
    assert ld.dataset(path, version="before").to_table() == before
    assert dataset.count_rows(HAS_B) == 2


def test_pylance_uses_the_index_after_a_repair(tmp_path: Path) -> None:
    path = tmp_path / "t"
    old_table(path, "2.2")
    ld.dataset(path).repair()
    assert "ScalarIndexQuery" in lance.dataset(path).scanner(filter=HAS_B).explain_plan()
    lance.write_dataset(lance.dataset(path).to_table().slice(0, 1), path, mode="append")
    for change in (lambda table: table.optimize.optimize_indices(), lambda table: table.optimize.compact_files()):
        change(lance.dataset(path))
        assert lance.dataset(path).count_rows(HAS_B) == ld.dataset(path).count_rows(HAS_B) == 3
    assert ld.dataset(path).find_problems() == []


def test_a_repair_keeps_rows_that_were_appended_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "t"
    columns = old_table(path, "2.2")
    dataset = ld.dataset(path)
    ld.write_dataset(
        pa.Table.from_pylist([{"id": 9, "tags": ["b"]}], schema=pa.schema(columns.items())), path, mode="append"
    )
    dataset.repair()
    assert (dataset.version, dataset.count_rows(), items_of(path)) == (4, 4, {"item"})
    assert lance.dataset(path).count_rows(HAS_B) == 3


def test_items_are_also_renamed_by_alter_columns(tmp_path: Path) -> None:
    path = tmp_path / "t"
    old_table(path, "2.2")
    dataset = ld.dataset(path)
    dataset.alter_columns({"path": "tags.l", "name": "item"}, {"path": "rows.l", "name": "element"})
    types = lance.dataset(path).schema
    assert (types.field("tags").type, types.field("rows").type.value_field.name) == (pa.list_(pa.string()), "element")
    assert lance.dataset(path).to_table().to_pylist() == dataset.to_table().to_pylist()
