"""R-trees: built by one library and read by the other, and equal to a scan."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from lance.file import LanceFileReader
from lance.indices import IndexConfig
from support.geometries import collection, line, point, point_table, polygon, wkb_table

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotIndexableError
from lance_duck.index.rtree.boxes import boxes_of

NAN, INF = math.nan, math.inf
BOX = "ST_GeomFromWKB(g) && 'POLYGON(({0} {1}, {2} {1}, {2} {3}, {0} {3}, {0} {1}))'::GEOMETRY"
orders = st.sampled_from("<>")
numbers = st.sampled_from([0.0, 1.0, -2.5, 3.0, 7.0, 1e300, NAN, 0.1])
points = st.tuples(numbers, numbers)
simple = st.one_of(
    st.builds(point, numbers, numbers, orders),
    st.builds(line, st.lists(points, max_size=3), orders),
    st.builds(line, st.lists(st.tuples(numbers, numbers, numbers), max_size=3), orders, st.sampled_from([1002, 2002])),
    st.builds(polygon, st.lists(st.lists(points, max_size=4), max_size=2), orders),
)
geometries = st.one_of(
    simple,
    st.builds(collection, st.lists(simple, max_size=3), orders),
    st.builds(collection, st.lists(st.builds(point, numbers, numbers, orders), max_size=3), orders, st.just(4)),
)


def some_points(count: int) -> list[tuple[float, float] | None]:
    rng = Random(count)
    return [None if i % 17 == 3 else (rng.random() * 100, rng.random() * 100) for i in range(count)]


@pytest.mark.parametrize("page_size", [16, 4096])
@pytest.mark.parametrize("kind", ["point", "wkb"])
def test_the_files_are_those_of_pylance(kind: str, page_size: int, tmp_path: Path) -> None:
    values = some_points(600)
    rows = point_table(values) if kind == "point" else wkb_table([None if v is None else point(*v) for v in values])
    files = []
    for library in (lance, ld):
        path = str(tmp_path / f"{library.__name__}.lance")
        lance.write_dataset(rows, path, data_storage_version="2.1", max_rows_per_file=250)
        config = IndexConfig("rtree", {"page_size": page_size})
        library.dataset(path).create_scalar_index("g", config)  # type: ignore[attr-defined]
        (segment,) = ld.dataset(path).handle.snapshot.indices
        assert (segment.details_type, segment.version) == ("/lance.index.pb.RTreeIndexDetails", 0)
        files.append({f.name: LanceFileReader(str(f)).read_all().to_table() for f in Path(path).glob("_indices/*/*")})
        condition = BOX.format(10, 10, 20, 30)
        if kind == "wkb":
            scanner = ld.dataset(path).scanner(filter=condition, columns=["id"])
            assert "ScalarIndexQuery: g: box overlaps (10 10, 20 30), by g_idx (RTree" in scanner.explain_plan()
            inside = [i for i, v in enumerate(values) if v is not None and 10 <= v[0] <= 20 and 10 <= v[1] <= 30]
            assert scanner.to_table()["id"].to_pylist() == inside
    assert files[0] == files[1]
    assert files[0]["page_data.lance"].schema.metadata == files[1]["page_data.lance"].schema.metadata
    assert lance.dataset(path).stats.index_stats("g_idx")["indices"][0]["page_size"] == page_size


@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_an_index_gives_what_a_scan_gives(data: st.DataObject, tmp_path_factory: Any) -> None:
    path = str(tmp_path_factory.mktemp("rtree") / "t.lance")
    values = data.draw(st.lists(st.none() | geometries, min_size=1, max_size=12))
    is_odd = any((value is not None and value[1:2] == b"\x07") or b"\x7f" in (value or b"") for value in values)
    writer: Any = ld if is_odd else data.draw(st.sampled_from([lance, ld]))
    stable = data.draw(st.booleans())
    lance.write_dataset(wkb_table(values), path, max_rows_per_file=5, enable_stable_row_ids=stable)
    writer.dataset(path).create_scalar_index("g", IndexConfig("rtree", {"page_size": 2}))
    dataset = ld.dataset(path)
    if data.draw(st.booleans()):
        dataset.delete("id = 1")
    if data.draw(st.booleans()):
        dataset.optimize.compact_files()
    dataset.insert(wkb_table(values[:2]))
    for _ in range(2):
        for _ in range(3):
            sides = sorted(data.draw(st.tuples(*[st.sampled_from([-3.0, 0.0, 0.1, 2.0, 8.0])] * 2)))
            condition = data.draw(st.sampled_from([BOX.format(sides[0], sides[0], sides[1], sides[1]), "g IS NULL"]))
            assert rows(dataset, condition, True) == rows(dataset, condition, False), (condition, values)
        dataset.optimize.optimize_indices()


def rows(dataset: ld.LanceDataset, condition: str, use: bool) -> Any:
    try:
        return dataset.to_table(filter=condition, columns=["id"], use_scalar_index=use)
    except InvalidInputError as error:
        return error.found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(points, min_size=1, max_size=4), orders), min_size=1, max_size=4))
def test_boxes_are_those_of_all_points(parts: list[tuple[list[tuple[float, float]], str]]) -> None:
    value = collection([line(line_, order) for line_, order in parts])
    (found,) = boxes_of(pa.array([value], pa.binary()), pa.array([0], pa.uint64()))
    whole = np.array([p for line_, _ in parts for p in line_])
    expected = [NAN] * 4 if np.isnan(whole).any() else [*whole.min(axis=0), *whole.max(axis=0)]
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=60, deadline=None)
@given(geometries, st.data())
def test_any_bytes_have_a_box_or_are_refused(value: bytes, data: st.DataObject) -> None:
    damaged = bytearray(value)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    try:
        boxes_of(pa.array([bytes(damaged)], pa.binary()), pa.array([0], pa.uint64()))
    except InvalidInputError as error:
        assert error.what.endswith("is not WKB")  # noqa: PT017


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"\x01\x01", "it ends too early"),
        (b"\x02" + point(1, 2)[1:], "its byte order is neither 0 nor 1"),
        (b"\x01\x63\x00\x00\x00", "its kind of geometry is unknown"),
        (b"\x01\x07\x00\x00\x00\xff\xff\xff\xff", "it ends too early"),
    ],
)
def test_bytes_that_are_not_wkb_are_refused_with_their_row(value: bytes, words: str, tmp_path: Path) -> None:
    dataset = ld.write_dataset(wkb_table([point(1, 2), value]), tmp_path / "t.lance")
    with pytest.raises(InvalidInputError, match=rf"{words}, in the row with _rowid 1"):
        dataset.create_scalar_index("g", "RTREE")
    assert dataset.version == 1


def test_other_columns_and_parameters_are_refused(tmp_path: Path) -> None:
    dataset = ld.write_dataset(wkb_table([point(1, 2)]), tmp_path / "t.lance")
    with pytest.raises(NotIndexableError, match=r"'id', which is not of type geoarrow.point or geoarrow.wkb"):
        dataset.create_scalar_index("id", "RTREE")
    with pytest.raises(InvalidInputError, match="page_size of an R-tree"):
        dataset.create_scalar_index("g", "RTREE", page_size=1)


def test_small_memory_spills_and_gives_the_same_files(tmp_path: Path) -> None:
    from lance_duck.index.kind import BuildOptions
    from lance_duck.index.rtree.build import Items

    rows = np.arange(1000, dtype=np.uint64)
    corners = np.random.default_rng(5).random((1000, 2))
    found = []
    for limit in (1 << 30, 64 * 100):
        with Items(BuildOptions(memory_limit=limit)) as items:
            for start in range(0, 1000, 90):
                part = corners[start : start + 90]
                items.add(np.concatenate([part, part], axis=1), rows[start : start + 90])
            found.append([np.concatenate(columns) for columns in zip(*items.sorted(), strict=True)])
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_sql_finds_rows_through_the_index(tmp_path: Path) -> None:
    values = [*(None if v is None else point(*v) for v in some_points(3000)), point(NAN, 12), line([])]
    ld.write_dataset(wkb_table(values), tmp_path / "t.lance", max_rows_per_file=1000)
    area = "'POLYGON((10 10, 12 10, 12 20, 10 20, 10 10))'::GEOMETRY"
    with ld.connect(tmp_path) as con:
        con.execute("CREATE INDEX by_g ON t USING RTREE (g) WITH (page_size = 32)")
        con.execute("CREATE TABLE memory.main.n AS FROM lance.t")
        for condition in (f"g && {area}", f"ST_Intersects_Extent({area}, t.g) AND id < 2000"):
            both = [
                con.execute(f"SELECT id FROM {name} AS t WHERE {condition} ORDER BY 1").fetchall()
                for name in ("lance.t", "memory.main.n")
            ]
            assert both[0] == both[1]
            assert len(both[0]) > 2
            plan = dict(con.execute(f"EXPLAIN SELECT id FROM t WHERE {condition}").fetchall())["lance_plan"]
            assert "box overlaps (10 10, 12 20), by by_g (RTree" in plan
            assert "which DuckDB then checks on the remaining rows" in plan


def test_geoparquet_comes_in_with_its_crs(tmp_path: Path) -> None:
    crs = {"type": "GeographicCRS", "name": "WGS 84", "id": {"authority": "EPSG", "code": 4326}}
    geo = {
        "version": "1.1.0",
        "primary_column": "g",
        "columns": {"g": {"encoding": "WKB", "geometry_types": ["Point"], "crs": crs}},
    }
    rows = pa.table({"id": [1, 2], "g": pa.array([point(1, 2), point(3, 4)])})
    pq.write_table(rows.replace_schema_metadata({"geo": json.dumps(geo)}), tmp_path / "x.parquet")
    with ld.connect(tmp_path / "lake") as con:
        con.execute(f"CREATE TABLE t AS FROM '{tmp_path / 'x.parquet'}'")
    dataset = ld.dataset(tmp_path / "lake" / "t.lance")
    metadata = dataset.schema.field("g").metadata
    assert metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
    assert json.loads(metadata[b"ARROW:extension:metadata"])["crs"] == crs
    dataset.create_scalar_index("g", "RTREE")
    assert dataset.to_table(filter=BOX.format(0, 0, 2, 2))["id"].to_pylist() == [1]


@pytest.mark.parametrize("library", [lance, ld])
@pytest.mark.filterwarnings("ignore::lance_duck.IndexWarning")
def test_damaged_files_are_scanned_or_harmless(library: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(wkb_table([point(i % 9, i // 9) for i in range(81)]), path, data_storage_version="2.1")
    library.dataset(path).create_scalar_index("g", IndexConfig("rtree", {"page_size": 4}))
    whole = ld.dataset(path).to_table(filter=BOX.format(2, 2, 4, 4))
    rng = Random(11)
    for file in Path(path).glob("_indices/*/*"):
        content = file.read_bytes()
        for number in range(12):
            damaged = bytearray(content)
            start = len(content) // 2 if number % 2 else 0  # the second half has metadata and footer
            damaged[start + rng.randrange(len(content) - start)] ^= 1 << rng.randrange(8)
            file.write_bytes(damaged[: -5 if number == 11 else None])
            found = ld.dataset(path).to_table(filter=BOX.format(2, 2, 4, 4))
            assert found.num_rows <= whole.num_rows  # a changed box or row may hide rows, as in every index
        file.write_bytes(content)
    assert ld.dataset(path).to_table(filter=BOX.format(2, 2, 4, 4)) == whole
