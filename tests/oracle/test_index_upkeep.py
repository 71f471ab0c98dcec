"""Indexes that one of the two makes the other uses, lists, describes, measures, optimizes and drops."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig as TheirConfig

import lance_duck as ld
from lance_duck.indices import IndexConfig

CASE_KIND = "life cycle"
OPTIONS = {"fsync": "false"}
ROWS = 400

KINDS = {
    "BTREE": ("a", "a = 7 OR a BETWEEN 1000 AND 1100", 1),
    "BITMAP": ("s", "s = 's3'", 1),
    "LABEL_LIST": ("l", "array_has(l, 2)", 1),
    "ZONEMAP": ("a", "a = 7 OR a BETWEEN 1000 AND 1100", 1),
    "BLOOMFILTER": ("s", "s = 's3'", 1),
}

Table = lance.LanceDataset | ld.LanceDataset
each_kind = pytest.mark.parametrize("kind", list(KINDS))
each_maker = pytest.mark.parametrize(
    ("make", "stable"),
    [
        pytest.param("ours", True, id="ours-stable ids"),
        pytest.param("theirs", False, id="theirs-addresses"),
        pytest.param("ours", False, id="ours-addresses", marks=pytest.mark.slow),
        pytest.param("theirs", True, id="theirs-stable ids", marks=pytest.mark.slow),
    ],
)


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "a": pa.array([None if i % 11 == 0 else i for i in ids], pa.int64()),
            "s": pa.array([None if i % 13 == 0 else f"s{i % 5}" for i in ids]),
            "l": pa.array([None if i % 17 == 0 else [i % 3, i % 4] for i in ids], pa.list_(pa.int64())),
        }
    )


def ours(uri: str) -> ld.LanceDataset:
    return ld.dataset(uri, storage_options=OPTIONS)


OPEN: dict[str, Callable[[str], Any]] = {"ours": ours, "theirs": lance.dataset}
OTHER = {"ours": "theirs", "theirs": "ours"}


def figures(ds: Table) -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:
    """Return the index metadata of a table: segments, statistics, descriptions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        listed = [{**segment, "fragment_ids": sorted(segment["fragment_ids"])} for segment in ds.list_indices()]
    described = [
        {
            **{name: getattr(index, name) for name in ("name", "type_url", "index_type", "num_rows_indexed", "fields")},
            **{name: getattr(index, name) for name in ("field_names", "total_size_bytes")},
            "segments": [
                {
                    **{name: getattr(s, name) for name in ("uuid", "dataset_version_at_last_update", "index_version")},
                    **{name: getattr(s, name) for name in ("created_at", "size_bytes", "base_id", "covering_fields")},
                    "fragment_ids": sorted(s.fragment_ids),
                }
                for s in index.segments
            ],
        }
        for index in ds.describe_indices()
    ]
    return listed, {index["name"]: ds.stats.index_stats(index["name"]) for index in described}, described


def check(uri: str, kind: str) -> dict[str, Any]:
    """Check that both libraries describe the index equally and return the same rows; returns its statistics."""
    mine, theirs = ours(uri), lance.dataset(uri)
    assert figures(mine) == figures(theirs)
    assert mine.has_index == theirs.has_index
    where = KINDS[kind][1]
    expected = sorted(theirs.to_table(columns=["id"], filter=where, use_scalar_index=False)["id"].to_pylist())
    for found in (mine, theirs):
        assert sorted(found.to_table(columns=["id"], filter=where)["id"].to_pylist()) == expected
    assert mine.count_rows(where) == len(expected)
    (statistics,) = figures(mine)[1].values()
    return json.loads(json.dumps(statistics))


def uncovered(statistics: dict[str, Any]) -> tuple[int, int]:
    return statistics["num_unindexed_rows"], statistics["num_segments"]


def write(uri: str, data: pa.Table, **settings: Any) -> None:
    ld.write_dataset(data, uri, storage_options=OPTIONS, max_rows_per_file=200, **settings)


def rewrite_column(uri: str, column: str, fragment_id: int) -> None:
    """Give all rows of a fragment another value of a column, in place."""
    dataset = ours(uri)
    fragment = dataset.get_fragment(fragment_id)
    assert fragment is not None
    table = fragment.to_table(columns=["id", column])
    moved = pa.array(list(reversed(table[column].to_pylist())), table[column].type)
    updated, fields = fragment.update_columns(pa.table({"id": table["id"], column: moved}), "id", "id")
    operation = ld.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    ld.LanceDataset.commit(uri, operation, read_version=dataset.version, storage_options=OPTIONS)


@each_kind
@each_maker
def test_both_libraries_maintain_one_index(tmp_path: Path, kind: str, make: str, stable: bool) -> None:
    uri = str(tmp_path / "t")
    column = KINDS[kind][0]
    write(uri, rows(0, ROWS), enable_stable_row_ids=stable)
    OPEN[make](uri).create_scalar_index(column, kind)
    statistics = check(uri, kind)
    assert (statistics["num_indexed_rows"], uncovered(statistics)) == (ROWS, (0, 1))
    plan = lance.dataset(uri).scanner(filter=KINDS[kind][1]).explain_plan()
    assert "ScalarIndexQuery" in plan

    write(uri, rows(ROWS, 50), mode="append")
    assert uncovered(check(uri, kind)) == (50, 1)
    OPEN[make](uri).optimize.optimize_indices(num_indices_to_merge=0)
    assert uncovered(check(uri, kind)) == (0, 2)
    write(uri, rows(ROWS + 50, 50), mode="append")
    OPEN[OTHER[make]](uri).optimize.optimize_indices(num_indices_to_merge=2)
    assert uncovered(check(uri, kind)) == (0, 1)

    ours(uri).delete("id % 7 = 0")
    statistics = check(uri, kind)
    assert statistics["num_indexed_rows"] == ours(uri).count_rows()
    ours(uri).update({"a": "a + 1000", "s": "'s3'", "l": "[2]"}, "id < 40")
    check(uri, kind)
    ours(uri).optimize.optimize_indices(num_indices_to_merge=0)
    assert check(uri, kind)["num_unindexed_rows"] == 0
    rewrite_column(uri, column, 1)
    assert check(uri, kind)["num_unindexed_rows"] > 0
    ours(uri).optimize.optimize_indices(num_indices_to_merge=0)
    assert check(uri, kind)["num_unindexed_rows"] == 0

    ours(uri).optimize.optimize_indices(retrain=True)
    assert uncovered(check(uri, kind)) == (0, 1)
    OPEN[make](uri).optimize.optimize_indices()
    check(uri, kind)
    ours(uri).validate()
    OPEN[OTHER[make]](uri).drop_index(f"{column}_idx")
    assert figures(ours(uri)) == figures(lance.dataset(uri)) == ([], {}, [])


@each_kind
@each_maker
def test_an_index_without_rows_is_filled_later(tmp_path: Path, kind: str, make: str, stable: bool) -> None:
    uri = str(tmp_path / "t")
    column = KINDS[kind][0]
    write(uri, rows(0, 50), enable_stable_row_ids=stable)
    OPEN[make](uri).create_scalar_index(column, kind, train=False)
    statistics = check(uri, kind)
    assert (statistics["index_type"], statistics["segments"], uncovered(statistics)) == ("N/A", [{}], (50, 1))
    OPEN[OTHER[make]](uri).optimize.optimize_indices()
    statistics = check(uri, kind)
    assert (statistics["num_indexed_rows"], uncovered(statistics)) == (50, (0, 1))


@each_kind
@each_maker
def test_segments_built_separately_commit_together(tmp_path: Path, kind: str, make: str, stable: bool) -> None:
    uri = str(tmp_path / "t")
    column = KINDS[kind][0]
    write(uri, rows(0, 800), enable_stable_row_ids=stable)
    builder = OPEN[make](uri)
    parts = [builder.create_index_uncommitted(column, kind, "i", fragment_ids=[n]) for n in range(3)]
    assert [sorted(p.fragment_ids) for p in parts] == [[0], [1], [2]]
    assert lance.dataset(uri).version == 1
    merged = OPEN[make](uri).merge_existing_index_segments(parts[:2])
    OPEN[make](uri).commit_existing_index_segments("i", column, [merged, parts[2]])
    assert uncovered(check(uri, kind)) == (200, 2)
    last = OPEN[make](uri).create_index_uncommitted(column, kind, "i", fragment_ids=[3], replace=True)
    OPEN[make](uri).commit_existing_index_segments("i", column, [last])
    assert uncovered(check(uri, kind)) == (0, 3)
    ours(uri).optimize.optimize_indices(num_indices_to_merge=3)
    assert uncovered(check(uri, kind)) == (0, 1)


@pytest.mark.parametrize(
    ("column", "kind", "parameters", "figure"),
    [
        ("a", "zonemap", {"rows_per_zone": 64}, {"num_zones": 8, "rows_per_zone": 64}),
        ("s", "bloomfilter", {"number_of_items": 100, "probability": 0.01}, {"num_blocks": 4, "probability": 0.01}),
        ("a", "btree", {"zone_size": 100}, {"num_pages": 4}),
    ],
)
def test_default_index_parameters_equal_those_of_pylance(
    tmp_path: Path, column: str, kind: str, parameters: dict[str, Any], figure: dict[str, Any]
) -> None:
    write(str(tmp_path / "t"), rows(0, ROWS))
    made = []
    for name, config in (("mine", IndexConfig(kind, parameters)), ("theirs", TheirConfig(kind, parameters))):
        (ours if name == "mine" else lance.dataset)(str(tmp_path / "t")).create_scalar_index(column, config, name)
        (found,) = ours(str(tmp_path / "t")).stats.index_stats(name)["segments"]
        made.append(found)
    assert made[0] == made[1]
    assert figure.items() <= made[0].items()


def test_default_index_names_equal_those_of_pylance(tmp_path: Path) -> None:
    names = []
    for who in ("ours", "theirs"):
        uri = str(tmp_path / who)
        write(uri, rows(0, 20))
        table = OPEN[who](uri)
        table.create_scalar_index("a", "BTREE")
        table.create_scalar_index("a", "BITMAP")
        table.create_scalar_index("a", "BTREE")
        table.create_scalar_index("S", "BTREE")
        table.create_scalar_index("id", "BTREE", "l_idx")
        table.create_scalar_index("l", "LABEL_LIST")
        names.append([(i.name, i.index_type, i.field_names) for i in lance.dataset(uri).describe_indices()])
    assert names[0] == names[1]
    assert [name for name, _, _ in names[0]] == ["a_idx", "a_idx_2", "l_idx", "l_idx_2", "s_idx"]


@pytest.mark.parametrize(
    "do",
    [
        pytest.param(lambda ds: ds.create_scalar_index("zz", "BTREE"), id="unknown column"),
        pytest.param(lambda ds: ds.create_scalar_index("l", "BTREE"), id="column of another type"),
        pytest.param(lambda ds: ds.create_scalar_index("a", "LABEL_LIST"), id="column that is no list"),
        pytest.param(lambda ds: ds.create_scalar_index("a", "FANCY"), id="unknown kind"),
        pytest.param(lambda ds: ds.create_scalar_index(["a", "s"], "BTREE"), id="two columns"),
        pytest.param(lambda ds: ds.create_scalar_index("a", "BTREE", replace=False), id="not replaced"),
        pytest.param(lambda ds: ds.create_scalar_index("s", "BTREE", "a_idx"), id="name of another column's"),
        pytest.param(lambda ds: ds.create_scalar_index("a", "BTREE", fragment_ids=[0]), id="fragments"),
        pytest.param(lambda ds: ds.create_scalar_index("a", "BTREE", "u", index_uuid="x"), id="bad uuid"),
        pytest.param(lambda ds: ds.create_index_uncommitted("a", "BTREE", "u"), id="no fragments"),
        pytest.param(lambda ds: ds.create_index_uncommitted("a", "BTREE", "u", fragment_ids=[9]), id="bad fragment"),
        pytest.param(lambda ds: ds.commit_existing_index_segments("u", "a", []), id="no segments"),
        pytest.param(lambda ds: ds.merge_existing_index_segments([]), id="nothing to merge"),
        pytest.param(lambda ds: ds.merge_index_metadata("0" * 32, "BTREE"), id="merge of metadata"),
        pytest.param(lambda ds: ds.drop_index("nope"), id="drop"),
        pytest.param(lambda ds: ds.stats.index_stats("nope"), id="statistics"),
        pytest.param(lambda ds: ds.prewarm_index("nope"), id="prewarm"),
        pytest.param(lambda ds: ds.prewarm_index("a_idx", with_position=True), id="prewarm positions"),
        pytest.param(lambda ds: ds.prewarm_index("a_idx", index_segments=["0" * 32]), id="prewarm segment"),
    ],
)
def test_errors_are_of_the_same_classes(tmp_path: Path, do: Callable[[Table], Any]) -> None:
    uri = str(tmp_path / "t")
    write(uri, rows(0, 20))
    lance.dataset(uri).create_scalar_index("a", "BTREE")
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        do(lance.dataset(uri))
    with pytest.raises(theirs.type) as mine:
        do(ours(uri))
    assert isinstance(mine.value, ld.LanceDuckError)
    assert ours(uri).version == 2
