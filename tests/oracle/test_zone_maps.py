"""Zone maps and Bloom filters of both libraries: equal files, and correct answers after every change."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.file import LanceFileReader
from lance.indices import IndexConfig
from unit.index.plain import indexed, rows_of
from unit.index.zone_cases import VALUES, satisfies

import lance_duck as ld
from lance_duck.index.build import build_segment, merge_segments
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.kind import BuildOptions, IndexKind
from lance_duck.index.query import Among, Between, Except, Null, Query
from lance_duck.index.search import estimate, search
from lance_duck.index.zones.kind import BLOOM_FILTER, ZONE_MAP
from lance_duck.snapshot import Snapshot, open_snapshot

PARAMETERS = {"rows_per_zone": 4}, {"number_of_items": 4, "probability": 0.01}
KINDS = ((ZONE_MAP, "zonemap", PARAMETERS[0]), (BLOOM_FILTER, "bloomfilter", PARAMETERS[1]))
BY_KIND = pytest.mark.parametrize(("kind", "name", "parameters"), KINDS, ids=[name for _, name, _ in KINDS])
STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])

TYPES = [
    (kind, name, parameters, type_name)
    for kind, name, parameters in KINDS
    for type_name, (type_, _) in VALUES.items()
    if kind.supports(type_) and type_name != "fixed"
]


def values_of(type_name: str, count: int) -> pa.Array:
    type_, choice = VALUES[type_name]
    return pa.array([None if i % 7 == 3 else choice[i * i // 5 % len(choice)] for i in range(count)], type_)


def built(snapshot: Snapshot, kind: IndexKind, parameters: dict[str, Any], column: str = "x") -> Any:
    ids = list(snapshot.fragments.ids())
    rows = rows_of(snapshot, column, ids, by_id=False)
    options = BuildOptions(parameters)
    return build_segment(snapshot, column, kind, rows, ids, name=f"{column}_idx", options=options)


def files(uri: str, uuid: object) -> LanceFileReader:
    (path,) = Path(uri, "_indices", str(uuid)).iterdir()
    return LanceFileReader(str(path))


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Return comparable rows of a file; the minimum of an all-NaN zone is NaN or null, which are equivalent."""
    rows = table.to_pylist()
    for row in rows:
        if isinstance(row.get("max"), float) and math.isnan(row["max"]):
            row["max"] = "NaN"
            row["min"] = None if row["min"] is None or math.isnan(row["min"]) else row["min"]
    return rows


def segments_of(snapshot: Snapshot) -> Iterator[Segment]:
    for index in catalog(snapshot):
        assert not index.ignored
        yield from index.segments


@pytest.mark.parametrize(("kind", "name", "parameters", "type_name"), TYPES, ids=[f"{t[1]}-{t[3]}" for t in TYPES])
def test_both_write_the_same(
    tmp_path: Path, kind: IndexKind, name: str, parameters: dict[str, Any], type_name: str
) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table({"k": range(50), "x": values_of(type_name, 50)})
    dataset = lance.write_dataset(table, uri, max_rows_per_file=17)
    dataset.delete("k in (0, 1, 6, 16, 20, 21, 22, 23, 24, 49)")
    dataset.create_scalar_index("x", IndexConfig(name, parameters))
    snapshot = open_snapshot(uri)
    (theirs,) = segments_of(snapshot)
    ours = built(snapshot, kind, parameters)
    their_file, our_file = files(uri, theirs.uuid), files(uri, ours.uuid)
    expected, found = their_file.read_all().to_table(), our_file.read_all().to_table()
    assert found.schema == expected.schema
    assert plain(found) == plain(expected)
    assert our_file.metadata().schema.metadata == their_file.metadata().schema.metadata
    assert ours.version == theirs.metadata.version
    assert ours.details_type == theirs.metadata.details_type


def wrong(dataset: Any, condition: Any) -> bool:
    asked = dataset.scanner(filter=condition, columns=["k"]).to_table()
    scanned = dataset.scanner(filter=condition, columns=["k"], use_scalar_index=False).to_table()
    return bool(asked != scanned)


@BY_KIND
@STABLE
def test_pylance_uses_zone_maps_built_by_lance_duck(
    tmp_path: Path, kind: IndexKind, name: str, parameters: dict[str, Any], stable: bool
) -> None:
    uri = str(tmp_path / "t.lance")
    x = pa.array([None if i % 9 == 0 else i // 2 for i in range(200)], pa.int64())
    text = pa.array([None if i % 9 == 0 else f"t{i // 2:03}" for i in range(200)])
    double = pa.array([[np.nan, -0.0, 0.0, None, np.inf, 1.5][i * i % 60 // 10] for i in range(200)])
    table = pa.table({"k": range(200), "x": x, "text": text, "double": double})
    dataset = lance.write_dataset(table, uri, max_rows_per_file=70, enable_stable_row_ids=stable)
    dataset.delete("k % 10 = 3")
    snapshot = open_snapshot(uri)
    for column in ("x", "text", "double"):
        snapshot = indexed(snapshot, built(snapshot, kind, parameters, column))
    dataset = lance.dataset(uri)
    conditions = ["x = 40", "x in (3, 77, 500)", "x is null", "x is not null", "text = 't040'", "text is null"]
    conditions += ["double = 0.0", "double = -0.0", "double = CAST('nan' AS DOUBLE)", "double is not null"]
    if kind is ZONE_MAP:
        conditions += ["x > 90", "x between 10 and 12", "text >= 't09'", "starts_with(text, 't01')"]
        conditions += [
            "double > 1.0",
            "double >= 0.0",
            "double < 0.0",
            "double <= -0.0",
            "double > CAST('inf' AS DOUBLE)",
        ]
    assert [condition for condition in conditions if wrong(dataset, condition)] == []
    plan = dataset.scanner(filter="x = 40").explain_plan()
    assert "ScalarIndexQuery" in plan
    looked_at = dataset.scanner(filter="x = 40").analyze_plan()
    read = re.search(r"rows_scanned=([0-9]+)\b", looked_at)
    assert read is not None
    assert int(read[1]) <= 20
    assert dataset.stats.index_stats("x_idx")["num_unindexed_rows"] == 0


ASKABLE = ("bool", "int8", "string", "binary", "fixed", "decimal", "date", "timestamp")


@BY_KIND
def test_pylance_finds_values_of_all_types(
    tmp_path: Path, kind: IndexKind, name: str, parameters: dict[str, Any]
) -> None:
    uri = str(tmp_path / "t.lance")
    types = [type_name for type_name in ASKABLE if kind.supports(VALUES[type_name][0])]
    columns = {type_name: values_of(type_name, 60) for type_name in types}
    lance.write_dataset(pa.table({"k": range(60), **columns}), uri, max_rows_per_file=25)
    snapshot = open_snapshot(uri)
    for column in columns:
        snapshot = indexed(snapshot, built(snapshot, kind, parameters, column))
    dataset = lance.dataset(uri)
    for column in columns:
        field = pc.field(column)
        type_, choice = VALUES[column]
        conditions = [field.is_null()]
        for value in choice:
            scalar = pa.scalar(value, type_)
            conditions += [field == scalar, field < scalar, field >= scalar, field.isin(pa.array([value], type_))]
        assert not any(wrong(dataset, condition) for condition in conditions), column


@BY_KIND
@pytest.mark.parametrize("ours", [False, True], ids=["theirs", "ours"])
def test_zone_map_segments_without_rows_do_not_prune(
    tmp_path: Path, kind: IndexKind, name: str, parameters: dict[str, Any], ours: bool
) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(pa.table({"k": range(9), "x": range(9)}), uri)
    if ours:
        snapshot = open_snapshot(uri)
        rows = rows_of(snapshot, "x", [], by_id=False)
        indexed(snapshot, build_segment(snapshot, "x", kind, rows, [], name="x_idx"))
    else:
        dataset.create_scalar_index("x", IndexConfig(name, parameters), train=False)
    snapshot = open_snapshot(uri)
    (segment,) = segments_of(snapshot)
    assert len(segment.fragments) == 0
    answer = search(snapshot, segment, Among(pa.array([7])))
    assert answer is not None
    assert not answer.maybe
    dataset = lance.dataset(uri)
    assert dataset.to_table(filter="x = 7")["k"].to_pylist() == [7]
    dataset.optimize.optimize_indices()
    check_answers(uri, "optimize")
    assert not wrong(lance.dataset(uri), "x = 7")


QUERIES: tuple[Query, ...] = (
    *(Among(pa.array([7])), Among(pa.array([-5, 300, 41])), Null(), Except(Null())),
    *(Between(pa.scalar(10), pa.scalar(20)), Between(None, pa.scalar(0)), Except(Between(pa.scalar(5)))),
)


def check_answers(uri: str, done: str) -> None:
    """Search every segment, and check the table."""
    snapshot = open_snapshot(uri)
    table = lance.dataset(uri).scanner(columns=["x"], with_row_address=True).to_table()
    value_of = dict(zip(table["_rowaddr"].to_pylist(), table["x"].to_pylist(), strict=True))
    for segment in segments_of(snapshot):
        covered = set(segment.fragments.tolist())
        mine = {row: value for row, value in value_of.items() if row >> 32 in covered}
        for query in (query for query in QUERIES if segment.kind.answers(query, segment.type)):
            wanted = {row for row, value in mine.items() if satisfies(value, query)}
            answer = search(snapshot, segment, query)
            assert answer is not None, done
            assert wanted <= set(answer.maybe), (done, query)
            assert set(answer.sure) & mine.keys() <= wanted, (done, query)
            most = estimate(snapshot, segment, query)
            assert most is not None
            assert most >= len(wanted)


def append(uri: str) -> None:
    extra = pa.table({"k": range(1000, 1030), "x": [None, *range(40, 69)], "y": range(30)})
    lance.write_dataset(extra, uri, mode="append")


def rewrite_in_place(uri: str) -> None:
    source = pa.table({"k": range(3, 60, 2), "x": [None if k % 5 else k + 300 for k in range(3, 60, 2)]})
    lance.dataset(uri).merge_insert("k").when_matched_update_all().execute(source)


def merge_ours(uri: str) -> None:
    snapshot = open_snapshot(uri)
    segments = [*segments_of(snapshot)]
    merged = merge_segments(snapshot, segments)
    indexed(snapshot, merged)


CHANGES = (
    ("append", append),
    ("delete", lambda uri: lance.dataset(uri).delete("k % 7 = 2")),
    ("update", lambda uri: lance.dataset(uri).update({"x": "x + 30"}, where="k < 12")),
    ("optimize", lambda uri: lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)),
    ("rewrite", rewrite_in_place),
    ("optimize again", lambda uri: lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=1)),
    ("rewrite again", rewrite_in_place),
    ("optimize all", lambda uri: lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=9)),
    ("compact", lambda uri: lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=60)),
    ("append again", append),
    ("optimize at last", lambda uri: lance.dataset(uri).optimize.optimize_indices()),
)


@BY_KIND
@STABLE
@pytest.mark.parametrize("ours", [False, True], ids=["theirs", "ours"])
def test_answers_stay_correct_after_changes_by_pylance(
    tmp_path: Path, kind: IndexKind, name: str, parameters: dict[str, Any], stable: bool, ours: bool
) -> None:
    uri = str(tmp_path / "t.lance")
    x = [None if i % 9 == 0 else i for i in range(100)]
    table = pa.table({"k": range(100), "x": x, "y": range(100)})
    dataset = lance.write_dataset(table, uri, max_rows_per_file=30, enable_stable_row_ids=stable)
    if ours:
        snapshot = open_snapshot(uri)
        indexed(snapshot, built(snapshot, kind, parameters))
    else:
        dataset.create_scalar_index("x", IndexConfig(name, parameters))
    check_answers(uri, "create")
    for done, change in CHANGES:
        change(uri)
        check_answers(uri, done)


@BY_KIND
def test_pylance_appends_to_a_string_zone_map_that_lance_duck_extended(
    tmp_path: Path, kind: IndexKind, name: str, parameters: dict[str, Any]
) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table({"k": range(20), "x": [f"a{i:02}" for i in range(20)]})
    lance.write_dataset(table, uri).create_scalar_index("x", IndexConfig(name, parameters))
    for i in range(2):
        more = pa.table({"k": range(20), "x": [None, *(f"{'bc'[i]}{j:02}" for j in range(19))]})
        (lance if i else ld).write_dataset(more, uri, mode="append")
    lance.dataset(uri).optimize.optimize_indices()
    snapshot = open_snapshot(uri)
    found = {
        value: sum(len(answer.maybe) for answer in answers if answer is not None)
        for value in ("a07", "b07", "c07")
        if (answers := [search(snapshot, s, Among(pa.array([value]))) for s in segments_of(snapshot)])
    }
    assert all(1 <= count <= 8 for count in found.values()), found
    assert [v for v in found if wrong(lance.dataset(uri), f"x = '{v}'")] == []
    assert sum(len(s.fragments) for s in segments_of(snapshot)) == 3
