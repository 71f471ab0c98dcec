"""Successive row changes leave the same rows as in a dict."""

from __future__ import annotations

import itertools
import tempfile
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_duck as ld

OPTIONS = {"fsync": "false"}
KEYS = st.integers(0, 12)
VALUES = st.none() | st.integers(-5, 5)
Rows = dict[int, tuple[int | None, str | None]]

SOURCE = st.dictionaries(KEYS, st.tuples(VALUES, st.sampled_from(["p", "q", None])), max_size=8)
CHANGES = st.one_of(
    st.tuples(st.just("delete"), st.integers(2, 5), KEYS),
    st.tuples(st.just("update"), st.integers(2, 5), KEYS),
    st.tuples(st.just("upsert"), SOURCE, st.booleans()),
    st.tuples(st.just("upsert some"), SOURCE, st.booleans()),
    st.tuples(st.just("newer only"), SOURCE, st.booleans()),
    st.tuples(st.just("insert"), SOURCE, st.booleans()),
    st.tuples(st.just("remove"), SOURCE, st.booleans()),
    st.tuples(st.just("keep only"), SOURCE, st.booleans()),
    st.tuples(st.just("in place"), SOURCE, st.booleans()),
)


def table(rows: Rows) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "n": pa.array([n for n, _ in rows.values()], pa.int64()),
            "s": pa.array([s for _, s in rows.values()], pa.string()),
        }
    )


def change(ds: Any, model: Rows, kind: str, what: Any, rest: Any) -> dict[str, int]:
    """Change a table and its model; return the expected counts."""
    if kind in ("delete", "update"):
        hit = [key for key in model if key % what == rest % what]
        if kind == "delete":
            assert ds.delete(f"id % {what} = {rest % what}") == {"num_deleted_rows": len(hit)}
            for key in hit:
                del model[key]
        else:
            assert ds.update({"n": "id + n"}, f"id % {what} = {rest % what}") == {"num_rows_updated": len(hit)}
            model |= {key: (None if model[key][0] is None else key + model[key][0], model[key][1]) for key in hit}
        return {}
    source, merge = table(what), ds.merge_insert("id")
    source = source.take(pa.array(sorted(range(len(what)), reverse=bool(rest)), pa.int64()))
    old, new = [key for key in what if key in model], [key for key in what if key not in model]
    counted = {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0}
    if kind == "newer only":
        old = [k for k in old if None not in (what[k][0], model[k][0]) and what[k][0] > model[k][0]]
        merge = merge.when_matched_update_all("source.n > target.n").when_not_matched_insert_all()
    elif kind in ("upsert", "upsert some"):
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
    elif kind == "in place":
        merge, new = merge.when_matched_update_all().write_mode("rewrite_columns"), []
    elif kind == "insert":
        merge, old = merge.when_not_matched_insert_all(), []
    elif kind == "remove":
        merge = merge.when_matched_delete()
    else:
        merge = merge.when_not_matched_by_source_delete("n IS NOT NULL")
    if kind in ("upsert some", "in place"):
        source = source.select(["n", "id"])
        model |= {key: (what[key][0], model[key][1]) for key in old}
        model |= {key: (what[key][0], None) for key in new}
    elif kind == "remove":
        counted["num_deleted_rows"] = len(old)
        for key in old:
            del model[key]
        old = new = []
    elif kind == "keep only":
        gone = [key for key in model if key not in what and model[key][0] is not None]
        counted["num_deleted_rows"] = len(gone)
        for key in gone:
            del model[key]
        old = new = []
    else:
        model |= {key: what[key] for key in [*old, *new]}
    counted |= {"num_inserted_rows": len(new), "num_updated_rows": len(old)}
    assert merge.execute(source) == counted
    return counted


@given(SOURCE, st.lists(CHANGES, max_size=6), st.booleans(), st.integers(1, 6))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_row_changes_follow_the_model(start: Rows, changes: list[Any], stable: bool, per_file: int) -> None:
    model = dict(start)
    with tempfile.TemporaryDirectory() as folder:
        settings_ = {"enable_stable_row_ids": stable, "max_rows_per_file": per_file, "storage_options": OPTIONS}
        ds = ld.write_dataset(table(model), f"{folder}/t", **settings_)
        ids: dict[int, int] = {}
        for kind, what, rest in [("upsert", {}, False), *changes]:
            change(ds, model, kind, what, rest)
            found = ld.dataset(ds.uri).to_table(columns=["id", "n", "s", "_rowid"])
            rows = {row["id"]: (row["n"], row["s"]) for row in found.to_pylist()}
            assert len(rows) == found.num_rows
            assert rows == model
            now = dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))
            if stable:
                assert all(ids[key] == now[key] for key in now if key in ids and kind != "remove")
                assert all(a != b for a, b in itertools.pairwise(sorted(now.values())))
            ids = now
