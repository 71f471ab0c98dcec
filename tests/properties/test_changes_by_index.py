"""Changes of a table with indexes leave the rows that they leave without."""

from __future__ import annotations

import itertools
import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.scan.indexes import lookup
from lance_duck.verbs.merge import match

OPTIONS = {"fsync": "false"}
NAN = float("nan")
KEYS = st.none() | st.integers(0, 9)
NUMBERS = st.sampled_from([None, 0.0, -0.0, 1.5, NAN, float("inf"), float("-inf")])
TEXTS = st.sampled_from([None, "", "a", "ab", "é"])
ROWS = st.lists(st.tuples(KEYS, NUMBERS, TEXTS), min_size=1, max_size=12)
SOURCE = st.lists(st.tuples(KEYS, NUMBERS, TEXTS), max_size=6)
ON = st.sampled_from([("k",), ("x",), ("s",), ("k", "s"), ("s", "x"), ("x", "k")])
CONDITIONS = st.sampled_from(
    [
        "k = 3",
        "k IN (1, 4, 7)",
        "k BETWEEN 2 AND 5 AND s = 'a'",
        "k IS NULL",
        "NOT (k > 2)",
        "x = 0",
        "x > 1 OR s = ''",
        "x = 'nan'::DOUBLE",
        "s LIKE 'a%'",
        "k = (SELECT max(k) FROM target)",
        "k IN (SELECT k FROM target WHERE s = 'ab')",
    ]
)
CHANGES = st.one_of(
    st.tuples(st.just("delete"), CONDITIONS, st.just(None)),
    st.tuples(st.just("update"), CONDITIONS, st.just(None)),
    st.tuples(st.sampled_from(["upsert", "insert", "remove", "newer", "keep"]), SOURCE, ON),
    st.tuples(st.just("append"), ROWS, st.just(None)),
    st.tuples(st.sampled_from(["index", "optimize", "compact"]), st.just(None), st.just(None)),
)


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    types = {"k": pa.int64(), "x": pa.float64(), "s": pa.string()}
    return pa.table({name: pa.array([row[i] for row in rows], type_) for i, (name, type_) in enumerate(types.items())})


def _build(ds: Any) -> None:
    for column in ("k", "x", "s"):
        ds.create_scalar_index(column, "BTREE")


def _change(ds: Any, kind: str, what: Any, on: Any, *, indexed: bool) -> Any:
    if kind == "delete":
        return ds.delete(what)
    if kind == "update":
        return ds.update({"k": "k + 1", "s": "'n'"}, what)
    if kind == "append":
        return ds.insert(_table(what))
    if kind == "compact":
        return ds.optimize.compact_files() and None
    if kind == "index":
        return _build(ds) if indexed else None
    if kind == "optimize":
        return ds.optimize.optimize_indices() if indexed else None
    merge = ds.merge_insert(list(on)).source_dedupe_behavior("first_seen")
    if kind == "upsert":
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
    elif kind == "insert":
        merge = merge.when_not_matched_insert_all()
    elif kind == "remove":
        merge = merge.when_matched_delete()
    elif kind == "newer":
        merge = merge.when_matched_update_all("source.x > target.x").when_not_matched_insert_all()
    else:
        merge = merge.when_matched_update_all().when_not_matched_by_source_delete("s = 'a'")
    return merge.execute(_table(what))


def _rows(ds: Any) -> list[str]:
    return sorted(map(repr, zip(*ds.to_table().to_pydict().values(), strict=True)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(ROWS, st.lists(CHANGES, min_size=1, max_size=5), st.booleans())
def test_changes_through_an_index_leave_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, rows: list[Any], changes: list[Any], stable: bool
) -> None:
    monkeypatch.setattr(match, "ROWS_PER_KEY", 0)
    uris = (f"memory://by-index-{next(NUMBERS_OF_TABLES)}", f"memory://by-scan-{next(NUMBERS_OF_TABLES)}")
    options = {"enable_stable_row_ids": stable, "max_rows_per_file": 5}
    with_index, without = (ld.write_dataset(_table(rows), uri, **options) for uri in uris)
    _build(with_index)
    for kind, what, on in changes:
        expected = _change(without, kind, what, on, indexed=False)
        found = _change(with_index, kind, what, on, indexed=True)
        if kind in ("delete", "update", "upsert", "insert", "remove", "newer", "keep"):
            assert found == expected, (kind, what, on)
        assert _rows(with_index) == _rows(without), (kind, what, on)


NUMBERS_OF_TABLES = itertools.count()


def test_changes_search_the_index_instead_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    search = lookup.search

    def noted(snapshot: Any, segment: Any, query: Any) -> Any:
        asked.append(str(query))
        return search(snapshot, segment, query)

    monkeypatch.setattr(lookup, "search", noted)
    monkeypatch.setattr(match, "ROWS_PER_KEY", 2)
    with tempfile.TemporaryDirectory() as folder:
        rows = pa.table({"k": range(100), "v": range(100)})
        ds = ld.write_dataset(rows, f"{folder}/t.lance", storage_options=OPTIONS, max_rows_per_file=25)
        ds.create_scalar_index("k", "BTREE")
        source = pa.table({"k": [7, 300], "v": [0, 0]})
        merge = ds.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
        assert merge.execute(source)["num_updated_rows"] == 1
        assert asked == ["value in (7, 300)"]
        asked.clear()
        assert ds.delete("k = 8") == {"num_deleted_rows": 1}
        assert ds.update({"v": "0"}, "k IN (9, 10)") == {"num_rows_updated": 2}
        assert len(asked) == 2
        asked.clear()
        assert ds.delete("k = 11 AND v < (SELECT avg(v) FROM target)") == {"num_deleted_rows": 1}
        assert asked == ["value in (11)"]
        asked.clear()
        many = pa.table({"k": range(60), "v": range(60)})
        assert ds.merge_insert("k").when_matched_update_all().execute(many)["num_updated_rows"] == 58
        assert asked == []
