from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError
from lance_duck.verbs.merge import source as merge_source

OPTIONS = {"fsync": "false"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("n", pa.int32()),
        pa.field("must", pa.int32(), nullable=False),
    ]
)


def table(ids: list[int], **columns: list[Any]) -> pa.Table:
    given = {"name": [f"s{i}" for i in ids], "n": ids, "must": [0] * len(ids), **columns}
    return pa.table({"id": ids, **given}, schema=SCHEMA)


@pytest.fixture
def ds(tmp_path: Path) -> ld.LanceDataset:
    """Ten rows in two fragments."""
    return ld.write_dataset(table(list(range(10))), tmp_path / "t", max_rows_per_file=5, storage_options=OPTIONS)


def files(ds: ld.LanceDataset) -> list[Path]:
    return sorted(Path(ds.uri).rglob("*"))


def content(ds: ld.LanceDataset, column: str = "n") -> dict[int, Any]:
    found = ld.dataset(ds.uri).to_table(columns=["id", column]).to_pydict()
    assert len(set(found["id"])) == len(found["id"])
    return dict(sorted(zip(found["id"], found[column], strict=True)))


def upsert(ds: ld.LanceDataset) -> Any:
    return ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()


# Changes by the handle.


def test_a_change_moves_only_its_handle(ds: ld.LanceDataset) -> None:
    other = ld.dataset(ds.uri)
    assert ds.delete("id = 3") == {"num_deleted_rows": 1}
    assert (ds.version, other.version, other.latest_version) == (2, 1, 2)
    assert (ds.count_rows(), other.count_rows()) == (9, 10)
    assert ds.update({"n": "-1"}, where="id = 4") == {"num_rows_updated": 1}
    assert ds.version == 3
    assert ds.to_table(filter="n = -1")["id"].to_pylist() == [4]


def test_changes_accept_messages_and_properties(ds: ld.LanceDataset) -> None:
    ds.delete("id = 1", commit_message="gone")
    ds.update({"n": "1"}, transaction_properties={"who": "me"})
    upsert(ds).commit_message("both").transaction_properties({"why": "so"}).execute(table([1]))
    said = [dict(ds.read_transaction(v).transaction_properties) for v in (2, 3, 4)]
    assert list(said[0].values()) == ["gone"]
    assert said[1] == {"who": "me"}
    assert sorted(said[2].values()) == ["both", "so"]


# Delete and update.


@pytest.mark.parametrize(
    "where",
    [
        "id >= 8",
        ("id >= ?", [8]),
        pc.field("id") >= 8,
        "id IN (SELECT id FROM target WHERE n >= 8)",
        ("id IN (SELECT max(id) - x FROM t, range($k) r(x) GROUP BY x)", {"k": 2}),
    ],
    ids=["sql", "parameters", "expression", "subquery", "subquery with parameters"],
)
def test_conditions_of_every_kind_select_rows(ds: ld.LanceDataset, where: Any) -> None:
    assert ds.update({"n": "100"}, where=where) == {"num_rows_updated": 2}
    assert content(ds) == {**{i: i for i in range(8)}, 8: 100, 9: 100}
    assert ds.delete("n = 100") == {"num_deleted_rows": 2}


def test_emptied_fragments_are_removed(ds: ld.LanceDataset) -> None:
    ds.delete("id < 3")
    assert ds.fragment_ids() == [0, 1]
    ds.delete("id < 5")
    assert ds.fragment_ids() == [1]
    ds.update({"n": "0"})
    assert ds.fragment_ids() == [2]
    ds.truncate_table()
    assert (ds.fragment_ids(), ds.count_rows(), ds.schema) == ([], 0, SCHEMA)


def test_repeated_deletions_accumulate_in_both_file_formats(tmp_path: Path) -> None:
    ds = ld.write_dataset(table(list(range(12_000))), tmp_path / "t", storage_options=OPTIONS)
    for step, suffix in ((100, "arrow"), (2, "bin")):
        ds.delete(f"id % {step} = 0")
        file = ds.handle.snapshot.fragments[0].deletion_file
        assert (file.suffix, file.num_deleted_rows) == (suffix, 12_000 // step)
    assert ds.count_rows() == 6000


@pytest.mark.parametrize("where", ["nope = 1", "id =", "id", "", "id = 1; DROP TABLE t", "(SELECT 5)", "max(id) = 1"])
def test_invalid_conditions_change_nothing(ds: ld.LanceDataset, where: str) -> None:
    before = files(ds)
    with pytest.raises(InvalidInputError):
        ds.delete(where)
    with pytest.raises(InvalidInputError):
        ds.update({"n": "0"}, where=where)
    assert files(ds) == before
    assert ds.version == 1


@pytest.mark.parametrize(
    "updates",
    [
        {},
        {"nope": "1"},
        {"_rowid": "1"},
        {"n": "nope"},
        {"n": "'x'"},
        {"n": "2.5"},
        {"n": "id * 1000000000"},
        {"n": "max(n)"},
        {"n": 5},
        {"must": "NULL"},
        {"must": "CASE WHEN id = 7 THEN NULL ELSE 1 END"},
        "n = 1",
    ],
)
def test_invalid_updates_change_nothing(ds: ld.LanceDataset, updates: Any) -> None:
    before = files(ds)
    with pytest.raises(InvalidInputError):
        ds.update(updates)
    assert files(ds) == before
    assert ds.version == 1


def test_new_values_see_the_old_ones(ds: ld.LanceDataset) -> None:
    ds.update({"id": "n", "n": "CAST(id AS INTEGER) + 1", "name": "name || n"}, where="id = 4")
    row = ds.to_table(filter="n = 5 AND name = 's44'").to_pylist()
    assert row == [{"id": 4, "name": "s44", "n": 5, "must": 0}]


def test_conditions_and_expressions_can_read_hidden_columns(ds: ld.LanceDataset) -> None:
    ds.update({"n": "CAST(_rowid + 1000 AS INTEGER)"}, where="_rowaddr IN (1, 2)")
    assert content(ds)[1] == 1001
    assert ds.delete("_rowid = 0") == {"num_deleted_rows": 1}


def test_new_values_may_use_subqueries(ds: ld.LanceDataset) -> None:
    ranks = "(SELECT count(*) FROM target AS other WHERE other.id > target.id)"
    ds.update({"n": f"{ranks} * 10", "name": "name || (SELECT max(id) FROM t)"}, where="id >= 7")
    assert content(ds) == {**{i: i for i in range(7)}, 7: 20, 8: 10, 9: 0}
    assert content(ds, "name")[8] == "s89"
    for text in ("(SELECT nope FROM target)", "(SELECT 'x')", "(SELECT 1"):
        with pytest.raises(InvalidInputError):
            ds.update({"n": text})


# Merges.


def test_upserts_report_their_counts(ds: ld.LanceDataset) -> None:
    assert upsert(ds).execute(table([3, 12], n=[30, 120])) == {
        "num_inserted_rows": 1,
        "num_updated_rows": 1,
        "num_deleted_rows": 0,
    }
    assert content(ds) == {**{i: i for i in range(10)}, 3: 30, 12: 120}


@pytest.mark.parametrize("matches", [True, False])
def test_a_duplicate_source_key_is_rejected_by_name(ds: ld.LanceDataset, matches: bool) -> None:
    key = 3 if matches else 33
    before = files(ds)
    with pytest.raises(InvalidInputError, match=f"id = {key}"):
        upsert(ds).execute(table([1, key, key]))
    assert files(ds) == before
    upsert(ds).source_dedupe_behavior("first_seen").execute(table([1, key, key], n=[5, 6, 7]))
    assert content(ds)[key] == 6


def test_null_keys_are_always_inserted(ds: ld.LanceDataset) -> None:
    source = pa.table({"id": pa.array([None, None, 2], pa.int64()), "must": pa.array([0, 1, 2], pa.int32())})
    for _ in range(2):
        assert upsert(ds).execute(source)["num_inserted_rows"] == 2
    assert ds.count_rows() == 14


def test_all_rows_with_a_key_are_updated(ds: ld.LanceDataset) -> None:
    ds.insert(table([3]))
    assert upsert(ds).execute(table([3], n=[7]))["num_updated_rows"] == 2
    assert ds.to_table(filter="id = 3")["n"].to_pylist() == [7, 7]


def test_source_columns_may_have_any_order_and_compatible_types(ds: ld.LanceDataset) -> None:
    source = pa.table({"must": pa.array([1], pa.int64()), "n": pa.array([8.0]), "id": pa.array([3], pa.int16())})
    upsert(ds).execute(source)
    assert ds.to_table(filter="id = 3").to_pylist() == [{"id": 3, "name": "s3", "n": 8, "must": 1}]


@pytest.mark.parametrize(
    "source",
    [
        pa.table({"id": [1], "other": [1]}),
        pa.table({"n": pa.array([1], pa.int32())}),
        pa.table([pa.array([1]), pa.array([2])], names=["id", "id"]),
        pa.table({"id": ["x"], "must": [1]}),
        pa.table({"id": [100], "must": pa.array([None], pa.int32())}),
        pa.table({"id": [100]}),
        pa.table({"id": [100], "must": [1 << 40]}),
        "no data",
        None,
    ],
    ids=["unknown", "no key", "twice", "text", "null", "missing", "too large", "text for data", "none"],
)
def test_incompatible_sources_change_nothing(ds: ld.LanceDataset, source: Any) -> None:
    before = files(ds)
    with pytest.raises(InvalidInputError):
        upsert(ds).execute(source)
    assert files(ds) == before
    assert ds.version == 1


def test_when_matched_fail_rejects_existing_keys(ds: ld.LanceDataset) -> None:
    merge = ds.merge_insert("id").when_matched_fail().when_not_matched_insert_all()
    with pytest.raises(InvalidInputError, match="id = 3"):
        merge.execute(table([3, 40]))
    assert merge.execute(table([40]))["num_inserted_rows"] == 1


@pytest.mark.parametrize(
    ("condition", "updated"),
    [("source.n > target.n", [2]), ("source.name = 'z' OR target.n = 1", [1, 3]), ("source.n IS NULL", [])],
)
def test_updates_of_merges_under_a_condition(ds: ld.LanceDataset, condition: str, updated: list[int]) -> None:
    source = table([1, 2, 3], n=[0, 5, 3], name=["a", "b", "z"])
    result = ds.merge_insert("id").when_matched_update_all(condition).execute(source)
    assert result["num_updated_rows"] == len(updated)
    assert [i for i in (1, 2, 3) if content(ds, "name")[i] != f"s{i}"] == updated


@pytest.mark.parametrize("condition", ["source.nope = 1", "n > 1", "source.n", "source.n >"])
def test_invalid_merge_conditions_are_rejected(ds: ld.LanceDataset, condition: str) -> None:
    with pytest.raises(InvalidInputError):
        ds.merge_insert("id").when_matched_update_all(condition).execute(table([1]))


def test_invalid_merges_are_rejected(ds: ld.LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="does not have an action"):
        ds.merge_insert("id").execute(table([1]))
    for keys in (None, [], "nope", ["id", "id"]):
        with pytest.raises(InvalidInputError):
            ds.merge_insert(keys)
    merge = ds.merge_insert("id")
    for bad in (
        lambda: merge.conflict_retries(-1),
        lambda: merge.retry_timeout(5),  # type: ignore[arg-type]
        lambda: merge.write_mode("nope"),
        lambda: merge.source_dedupe_behavior("nope"),
        lambda: merge.data_storage_version("nope"),
    ):
        with pytest.raises(LanceDuckError):
            bad()


@pytest.mark.parametrize("kind", ["insert", "delete", "all columns", "keys alone"])
def test_columns_are_rewritten_in_place_only_if_possible(ds: ld.LanceDataset, kind: str) -> None:
    merge = ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    source = table([1]).select(["id", "n"])
    if kind == "insert":
        merge.when_not_matched_insert_all()
    elif kind == "delete":
        merge.when_matched_delete()
    elif kind == "all columns":
        source = table([1])
    else:
        source = source.select(["id"])
    with pytest.raises(InvalidInputError, match=r'cannot use rewrite_columns.*; use write_mode\("rewrite_rows"\)'):
        merge.execute(source)


def test_in_place_rewrites_keep_fragments_and_deletions(ds: ld.LanceDataset) -> None:
    ds.delete("id = 2")
    source = table([1, 3, 7], n=[10, 30, 70]).select(["id", "n"])
    for _ in range(2):
        ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(source)
    assert ds.fragment_ids() == [0, 1]
    assert content(ds) == {0: 0, 1: 10, 3: 30, 4: 4, 5: 5, 6: 6, 7: 70, 8: 8, 9: 9}
    assert [len(fragment.files) for fragment in ds.handle.snapshot.fragments] == [2, 2]
    assert content(ds, "name")[3] == "s3"


def test_a_stream_is_read_once_even_if_the_merge_is_retried(
    ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_source, "IN_MEMORY", 100)
    kept: list[str] = []
    spill = merge_source._Spill.keep

    def keep(self: Any, batches: Any) -> pa.Table:
        kept.append(self._path)
        return spill(self, batches)

    monkeypatch.setattr(merge_source._Spill, "keep", keep)
    stale = ld.dataset(ds.uri, storage_options=OPTIONS)
    ds.insert(table([50]))
    source = table(list(range(40, 60))).to_reader(max_chunksize=3)
    assert upsert(stale).execute(source) == {
        "num_inserted_rows": 19,
        "num_updated_rows": 1,
        "num_deleted_rows": 0,
    }
    assert sorted(content(stale)) == [*range(10), *range(40, 60)]
    assert len(kept) == 1
    assert not Path(kept[0]).exists()


def test_an_empty_source_matches_nothing(ds: ld.LanceDataset) -> None:
    assert upsert(ds).execute(table([])) == {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0}
    merge = ds.merge_insert("id").when_not_matched_by_source_delete("id > 7")
    assert merge.execute(table([]))["num_deleted_rows"] == 2


def test_merge_plans_describe_the_merge_and_change_nothing(ds: ld.LanceDataset) -> None:
    before = files(ds)
    merge = upsert(ds)
    for plan in (merge.explain_plan(), merge.explain_plan(SCHEMA, verbose=True)):
        assert "MergeInsert: on=[id], when_matched=UpdateAll, when_not_matched=InsertAll" in plan
        assert "Join" in plan
    told = merge.analyze_plan(table([1, 50]))
    for part in ("num_inserted_rows=1", "num_updated_rows=1", "bytes_written=", "num_files_written=1"):
        assert part in told
    assert files(ds) == before


def test_a_merge_can_be_committed_by_another_process(ds: ld.LanceDataset) -> None:
    transaction, result = upsert(ds).execute_uncommitted(table([3, 12], n=[30, 120]))
    assert (result["num_updated_rows"], ds.version, ds.latest_version) == (1, 1, 1)
    after = ld.LanceDataset.commit(ds.uri, transaction)
    assert after.version == 2
    assert content(ds)[3] == 30


def test_keys_of_all_comparable_kinds(tmp_path: Path) -> None:
    stamps = pa.array([1, 2, 3], pa.timestamp("us"))
    data = pa.table({"a": ["x", "y", "z"], "t": stamps, "d": pa.array([0.5, 1.5, 2.5]), "v": [1, 2, 3]})
    ds = ld.write_dataset(data, tmp_path / "t", storage_options=OPTIONS)
    for keys in (["a"], ["t"], ["d"], ["t", "a"], ["d", "t", "a"]):
        source = data.slice(1).set_column(3, "v", pa.array([20, 30]))
        assert ds.merge_insert(keys).when_matched_update_all().execute(source)["num_updated_rows"] == 2
    assert sorted(ds.to_table()["v"].to_pylist()) == [1, 20, 30]


def test_a_merge_of_many_batches_keeps_every_row(tmp_path: Path) -> None:
    ids = list(range(0, 200_000, 2))
    ds = ld.write_dataset(table(ids), tmp_path / "t", max_rows_per_file=30_000, storage_options=OPTIONS)
    source = table(list(range(50_000, 150_000)), n=[-1] * 100_000)
    assert upsert(ds).execute(source.to_reader(max_chunksize=999)) == {
        "num_inserted_rows": 50_000,
        "num_updated_rows": 50_000,
        "num_deleted_rows": 0,
    }
    found = ds.to_table(columns=["id", "n"])
    assert sorted(found["id"].to_pylist()) == sorted({*ids, *range(50_000, 150_000)})
    assert ds.count_rows("n = -1") == 100_000


def test_filtered_datasets_reject_every_change(ds: ld.LanceDataset) -> None:
    part = ds.filter("id < 5")
    for change in (
        lambda: part.delete("true"),
        lambda: part.update({"n": "0"}),
        lambda: upsert(part),
        lambda: part.insert(table([1])),
        lambda: part.truncate_table(),
    ):
        with pytest.raises(InvalidInputError, match="filtered dataset cannot be changed"):
            change()
    assert ds.latest_version == 1


def test_merges_use_the_primary_key_by_default(tmp_path: Path) -> None:
    def key(place: int) -> dict[str, str]:
        return {"lance-schema:unenforced-primary-key:position": str(place)}

    schema = pa.schema(
        [
            pa.field("a", pa.int64(), nullable=False, metadata=key(2)),
            pa.field("b", pa.string(), nullable=False, metadata=key(1)),
            pa.field("v", pa.int64()),
        ]
    )
    data = pa.table({"a": [1, 1], "b": ["x", "y"], "v": [1, 2]}, schema=schema)
    ds = ld.write_dataset(data, tmp_path / "t", storage_options=OPTIONS)
    source = pa.table({"a": [1, 2], "b": ["y", "y"], "v": [20, 30]}, schema=schema)
    merge = ds.merge_insert().when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute(source) == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert ds.to_table().sort_by("v")["v"].to_pylist() == [1, 20, 30]


def test_struct_fields_missing_in_the_source_keep_their_values(tmp_path: Path) -> None:
    deep = pa.struct([("x", pa.int64()), ("y", pa.string()), ("in", pa.struct([("p", pa.int64()), ("q", pa.int64())]))])
    before = [
        {"x": 1, "y": "a", "in": {"p": 1, "q": 2}},
        {"x": 2, "y": "b", "in": {"p": 3, "q": 4}},
        None,
        {"x": 4, "y": "d", "in": None},
        {"x": 5, "y": "e", "in": {"p": 5, "q": 6}},
    ]
    data = pa.table({"id": range(5), "s": pa.array(before, deep), "other": range(5)})
    ds = ld.write_dataset(data, tmp_path / "t", max_rows_per_file=2, storage_options=OPTIONS)
    part = pa.struct([("in", pa.struct([("q", pa.int64())])), ("x", pa.int64())])
    new = [{"x": 20, "in": {"q": 40}}, {"x": 30, "in": None}, {"x": 40, "in": {"q": 8}}, None, {"x": 9, "in": None}]
    source = pa.table({"id": [1, 2, 3, 4, 9], "s": pa.array(new, part)})
    upsert(ds).execute(source)
    found = ds.to_table().sort_by("id")
    assert found["s"].to_pylist() == [
        before[0],
        {"x": 20, "y": "b", "in": {"p": 3, "q": 40}},
        {"x": 30, "y": None, "in": None},
        {"x": 40, "y": "d", "in": {"p": None, "q": 8}},
        None,
        {"x": 9, "y": None, "in": None},
    ]
    assert found["other"].to_pylist() == [0, 1, 2, 3, 4, None]


@pytest.mark.parametrize(
    "settings",
    [
        {"conflict_retries": -1},
        {"conflict_retries": "1"},
        {"conflict_retries": True},
        {"retry_timeout": 3},
        {"commit_message": "half of a pair: \ud800"},
        {"transaction_properties": {"\ud800": "x"}},
    ],
)
def test_invalid_change_settings_are_rejected(ds: ld.LanceDataset, settings: dict[str, Any]) -> None:
    before = files(ds)
    for change in (lambda: ds.delete("id = 1", **settings), lambda: ds.update({"n": "1"}, **settings)):
        with pytest.raises(InvalidInputError):
            change()
    assert files(ds) == before


# Concurrent column changes by others.


def test_concurrent_in_place_changes_are_kept(ds: ld.LanceDataset) -> None:
    stale, deleting = ld.dataset(ds.uri, storage_options=OPTIONS), ld.dataset(ds.uri, storage_options=OPTIONS)
    source = pa.table({"id": [1, 2], "name": ["new", "new"]})
    ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(source)
    stale.update({"n": "-1"}, where="id = 1")
    deleting.delete("name = 's2'")
    assert content(ds, "name") == {i: "new" if i in (1, 2) else f"s{i}" for i in range(10)}
    assert content(ds)[1] == -1


def test_a_concurrently_dropped_column_is_not_rewritten(ds: ld.LanceDataset) -> None:
    stale = ld.dataset(ds.uri, storage_options=OPTIONS)
    ds.drop_columns(["name"])
    before = files(ds)
    merge = stale.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    with pytest.raises(InvalidInputError, match="found name"):
        merge.execute(pa.table({"id": [1], "name": ["new"]}))
    assert files(ds) == before
    assert all(len(fragment.data_files()) == 1 for fragment in ld.dataset(ds.uri).get_fragments())


def test_a_source_is_cast_to_concurrently_altered_types(ds: ld.LanceDataset) -> None:
    in_place, upserting = (ld.dataset(ds.uri, storage_options=OPTIONS) for _ in range(2))
    ds.alter_columns({"path": "n", "data_type": pa.int64()}, {"path": "id", "data_type": pa.int32()})
    merge = in_place.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    merge.execute(pa.table({"id": [1], "n": [-1]}))
    upsert(upserting).execute(table([2, 20], n=[-2, -20]))
    assert content(ds) == {**{i: i for i in range(10)}, 1: -1, 2: -2, 20: -20}
