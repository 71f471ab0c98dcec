"""Columns and fields below them in ALTER TABLE, COMMENT ON and CREATE INDEX; `statements/fields.sql` has the rest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError

INNER = pa.struct([("i", pa.int32()), ("n", pa.struct([("x", pa.int32()), ("y.z", pa.string())]))])
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "s": pa.array([{"i": 1, "n": {"x": 1, "y.z": "q"}}, None, {"i": None, "n": None}], INNER),
        "m": pa.array([[("a", {"i": 1, "n": None}), ("b", None)], None, []], pa.map_(pa.string(), INNER)),
        "f": pa.array([[{"i": 1, "n": None}, None], None, None], pa.list_(INNER, 2)),
        "v": [[1.0, 2.0], None, [3.0, 4.0]],
    }
)


GRAMMAR = duckdb.__version__ >= "2"
"""Whether DuckDB's grammar has fields in ALTER COLUMN."""


@pytest.fixture
def con(tmp_path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    ld.write_dataset(ROWS, tmp_path / "t.lance", data_storage_version="2.2")
    return connect(tmp_path)


def table(tmp_path: Path) -> ld.LanceDataset:
    return ld.dataset(tmp_path / "t.lance")


def column(tmp_path: Path, name: str) -> list[Any]:
    found: list[Any] = table(tmp_path).to_table().column(name).to_pylist()
    return found


def test_fields_are_dropped_from_values_of_maps_and_fixed_size_lists(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("ALTER TABLE t DROP COLUMN m.value.n")
    con.execute("ALTER TABLE t DROP COLUMN f.element.n")
    con.execute('ALTER TABLE t DROP COLUMN s.n."y.z"')
    assert column(tmp_path, "m") == [[("a", {"i": 1}), ("b", None)], None, []]
    assert column(tmp_path, "f") == [[{"i": 1}, None], None, None]
    assert column(tmp_path, "s") == [{"i": 1, "n": {"x": 1}}, None, {"i": None, "n": None}]
    for path, words in (("m.value.i", "last field"), ("m.key", "not a struct"), ("m.value", "not a struct")):
        with pytest.raises(InvalidInputError, match=words):
            con.execute(f"ALTER TABLE t DROP COLUMN {path}")


INVALID = ("s.n.y.z", '"s.i"', '"s"."i.x"', "s.i.x", "id.s", "v.x", "t.id", "t.s.i", "m.entries.value.i")


@pytest.mark.parametrize(
    ("form", "path"),
    [
        *product(("DROP COLUMN {}", "RENAME COLUMN {} TO other"), (*INVALID, "v.element")),
        *product(["ALTER COLUMN {} TYPE BIGINT"], INVALID),
    ],
)
def test_invalid_column_paths_change_nothing(con: ld.Connection, tmp_path: Path, path: str, form: str) -> None:
    before = table(tmp_path)
    with pytest.raises(LanceDuckError if GRAMMAR or "TYPE" not in form else (LanceDuckError, duckdb.ParserException)):
        con.execute(f"ALTER TABLE t {form.format(path)}")
    assert table(tmp_path).version == before.version
    assert table(tmp_path).to_table() == before.to_table()


@pytest.mark.parametrize("path", ["s.nothing", "nothing", "nothing.i", "m.value.nothing", "f.element.nothing", '"s.i"'])
def test_if_exists_ignores_missing_fields(con: ld.Connection, tmp_path: Path, path: str) -> None:
    con.execute(f"ALTER TABLE t DROP COLUMN IF EXISTS {path}")
    assert (table(tmp_path).version, table(tmp_path).to_table()) == (1, ROWS)


@pytest.mark.skipif(not GRAMMAR, reason="a syntax error of DuckDB's")
def test_field_types_and_nullability_can_be_altered(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("ALTER TABLE t ALTER COLUMN s.n.x TYPE BIGINT")
    con.execute("ALTER TABLE t ALTER s.I SET DATA TYPE SMALLINT")
    assert table(tmp_path).schema.field("s").type.field("n").type.field("x").type == pa.int64()
    assert table(tmp_path).schema.field("s").type.field("i").type == pa.int16()
    assert column(tmp_path, "s") == ROWS.column("s").to_pylist()
    con.execute("DELETE FROM t WHERE s IS NULL OR s.i IS NULL")
    con.execute("ALTER TABLE t ALTER COLUMN s.i SET NOT NULL")
    assert not table(tmp_path).schema.field("s").type.field("i").nullable
    con.execute("ALTER TABLE t ALTER COLUMN s.i DROP NOT NULL")
    assert table(tmp_path).schema.field("s").type.field("i").nullable


@pytest.mark.parametrize(
    "action",
    [
        "ADD COLUMN f.element.k INTEGER DEFAULT 1",
        *(["ALTER COLUMN s.i SET DEFAULT 3", "ALTER COLUMN s.i TYPE BIGINT USING s.i + 1"] if GRAMMAR else []),
    ],
)
def test_unsupported_nested_alterations_are_rejected(con: ld.Connection, tmp_path: Path, action: str) -> None:
    with pytest.raises(UnsupportedError, match="table t"):
        con.execute(f"ALTER TABLE t {action}")
    assert table(tmp_path).to_table() == ROWS


def test_fields_are_added_to_values_of_maps_and_fixed_size_lists(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("ALTER TABLE t ADD COLUMN m.value.k INTEGER")
    con.execute("ALTER TABLE t ADD COLUMN m.value.d INTEGER DEFAULT 1")
    con.execute("ALTER TABLE t ADD COLUMN f.element.k INTEGER")
    assert column(tmp_path, "m") == [[("a", {"i": 1, "n": None, "k": None, "d": 1}), ("b", None)], None, []]
    assert column(tmp_path, "f") == [[{"i": 1, "n": None, "k": None}, None], None, None]


@pytest.mark.skipif(not GRAMMAR, reason="a syntax error of DuckDB's")
@pytest.mark.parametrize(
    ("path", "kind", "name", "expected"),
    [
        ("s.i", "VARCHAR", "s", [{"i": "1", "n": {"x": 1, "y.z": "q"}}, None, {"i": None, "n": None}]),
        ("s.n.x", "DOUBLE", "s", [{"i": 1, "n": {"x": 1.0, "y.z": "q"}}, None, {"i": None, "n": None}]),
        (
            "s.n",
            "STRUCT(x BIGINT, more DATE)",
            "s",
            [{"i": 1, "n": {"x": 1, "more": None}}, None, {"i": None, "n": None}],
        ),
        ("m.value.i", "VARCHAR", "m", [[("a", {"i": "1", "n": None}), ("b", None)], None, []]),
        ("m.key", "BLOB", "m", [[(b"a", {"i": 1, "n": None}), (b"b", None)], None, []]),
        ("f.element.i", "VARCHAR", "f", [[{"i": "1", "n": None}, None], None, None]),
        ("v.element", "VARCHAR", "v", [["1.0", "2.0"], None, ["3.0", "4.0"]]),
    ],
)
def test_fields_at_any_depth_get_other_types(
    con: ld.Connection, tmp_path: Path, path: str, kind: str, name: str, expected: list[Any]
) -> None:
    con.execute(f"COMMENT ON COLUMN t.{path} IS 'kept'")
    con.execute("DELETE FROM t WHERE id = 3")
    con.execute(f"ALTER TABLE t ALTER COLUMN {path} TYPE {kind}")
    assert column(tmp_path, name) == expected[:2]
    assert table(tmp_path).checkout_version(1).to_table() == ROWS
    comments = [field.metadata.get("comment") for field in table(tmp_path).handle.snapshot.schema.walk()]
    assert comments.count("kept") == 1


def test_new_fields_get_null_or_their_default_in_non_null_structs(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("ALTER TABLE t ADD COLUMN s.k DOUBLE")
    con.execute("ALTER TABLE t ADD COLUMN s.n.d VARCHAR DEFAULT 'x' || 'y'")
    assert column(tmp_path, "s") == [
        {"i": 1, "n": {"x": 1, "y.z": "q", "d": "xy"}, "k": None},
        None,
        {"i": None, "n": None, "k": None},
    ]


def test_comments_can_be_set_on_fields_with_dots_in_their_names(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("""COMMENT ON COLUMN t.s.n."y.z" IS 'deep'""")
    con.execute("COMMENT ON COLUMN t.m.value.i IS 'in a map'")
    schema = table(tmp_path).handle.snapshot.schema
    assert schema.by_path("s.n.`y.z`").metadata["comment"] == "deep"
    assert schema.by_path("m.entries.value.i").metadata["comment"] == "in a map"
    for path in ('t."s.i"', "t.id.x", "t.s.nothing"):
        with pytest.raises(InvalidInputError):
            con.execute(f"COMMENT ON COLUMN {path} IS 'x'")


def test_indexes_can_be_created_on_fields(con: ld.Connection, tmp_path: Path) -> None:
    con.execute('CREATE INDEX of_text ON t (s.N."y.z")')
    con.execute("CREATE INDEX of_number ON t (S.i)")
    fields = {index.name: index.fields for index in table(tmp_path).handle.snapshot.indices}
    schema = table(tmp_path).handle.snapshot.schema
    assert fields["of_text"] == (schema.by_path("s.n.`y.z`").id,)
    assert fields["of_number"] == (schema.by_path("s.i").id,)
    with pytest.raises(LanceDuckError):
        con.execute('CREATE INDEX ON t ("s.i")')
    con.execute("ALTER TABLE t DROP COLUMN s.i")
    assert [index.name for index in table(tmp_path).describe_indices()] == ["of_text"]


def test_extra_words_after_drop_column_are_rejected(con: ld.Connection, tmp_path: Path) -> None:
    for words in ("CASCADE RESTRICT", "s", ", DROP COLUMN v"):
        with pytest.raises((LanceDuckError, duckdb.Error)):
            con.execute(f"ALTER TABLE t DROP COLUMN id {words}")
    con.execute("ALTER TABLE t DROP COLUMN id CASCADE")
    assert table(tmp_path).schema.names == ["s", "m", "f", "v"]
