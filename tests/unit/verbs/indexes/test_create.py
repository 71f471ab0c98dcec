"""Creating, listing and dropping indexes; segments that are built apart."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from unit.index.plain import PlainKind

import lance_duck as ld
from lance_duck.errors import (
    IndexExistsError,
    IndexNotFoundError,
    InvalidInputError,
    LanceDuckError,
    NotIndexableError,
    UnknownColumnError,
    UnsupportedError,
    WrongTypeError,
)
from lance_duck.index import registry
from lance_duck.indices import IndexConfig
from lance_duck.progress import IndexProgress
from lance_duck.verbs.indexes import segment_orders

OPTIONS = {"fsync": "false"}
SIDE = pa.struct([("x", pa.int64()), ("a.b", pa.string())])


def rows(first: int = 0, count: int = 10) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "Name": [f"s{i % 3}" for i in ids],
            "side": pa.array([None if i % 4 == 0 else {"x": i, "a.b": str(i)} for i in ids], SIDE),
            "list": pa.array([[i, None] for i in ids], pa.list_(pa.int64())),
            "kind": pa.array([["a", "b", None][i % 3] for i in ids]).dictionary_encode(),
            "vector": pa.array([[0.0, 1.0]] * count, pa.list_(pa.float32(), 2)),
            "blob": pa.array([b"x"] * count, pa.large_binary()),
        }
    )


def write(place: str, data: pa.Table | None = None, **settings: Any) -> ld.LanceDataset:
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = rows() if data is None else data
    schema = data.schema.set(data.schema.get_field_index("blob"), field)
    settings = {"max_rows_per_file": 5, "data_storage_version": "2.1", **settings}
    return ld.write_dataset(data.cast(schema), place, storage_options=OPTIONS, **settings)


@pytest.fixture
def ds(place: str) -> ld.LanceDataset:
    """Ten rows in two fragments."""
    return write(place)


def segments(ds: ld.LanceDataset) -> list[tuple[str, str, list[str], list[int]]]:
    return [(i["name"], i["type"], i["fields"], sorted(i["fragment_ids"])) for i in ds.list_indices()]


def files(ds: ld.LanceDataset) -> set[str]:
    return {str(path) for path in Path(ds.uri).rglob("_indices/*/*")}


# Creating.


@pytest.mark.parametrize(
    ("column", "kind", "shown"),
    [
        ("id", "BTREE", "BTree"),
        ("Name", "bitmap", "Bitmap"),
        ("list", "Label_List", "LabelList"),
        ("id", "ZONEMAP", "ZoneMap"),
        ("Name", "BloomFilter", "BloomFilter"),
        ("id", IndexConfig("btree"), "BTree"),
    ],
)
def test_an_index_covers_all_rows(ds: ld.LanceDataset, column: str, kind: Any, shown: str) -> None:
    other = ld.dataset(ds.uri)
    ds.create_scalar_index(column, kind)
    assert (ds.version, other.version) == (2, 1)
    assert segments(ds) == [(f"{column}_idx", shown, [column], [0, 1])]
    assert ds.has_index
    assert not other.has_index
    ds.validate()


@pytest.mark.parametrize(
    ("column", "path"),
    [("side.x", "side.x"), ("SIDE.X", "side.x"), ("side.`a.b`", "side.`a.b`"), ("NAME", "Name"), (["id"], "id")],
)
def test_columns_are_found_by_path_in_any_case(ds: ld.LanceDataset, column: Any, path: str) -> None:
    ds.create_scalar_index(column, "BTREE")
    assert segments(ds) == [(f"{path}_idx", "BTree", [path], [0, 1])]


def test_struct_fields_of_null_structs_are_indexed_as_null(ds: ld.LanceDataset) -> None:
    ds.create_scalar_index("side.x", "BTREE")
    assert ds.to_table(filter="side.x IS NULL")["id"].to_pylist() == [0, 4, 8]
    assert ds.to_table(filter="side.x = 7")["id"].to_pylist() == [7]


@pytest.mark.parametrize("stable", [False, True])
def test_deleted_rows_are_not_indexed(place: str, stable: bool) -> None:
    ds = write(place, enable_stable_row_ids=stable)
    ds.delete("id IN (1, 2, 7)")
    told: list[tuple[int, int]] = []
    ds.create_scalar_index("id", "BTREE", progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 7)
    assert told[-1] == (7, 7)
    found = ds.index_statistics("id_idx")
    assert (found["num_indexed_rows"], found["segments"]) == (7, [{"min": "0", "max": "9", "num_pages": 1}])


def test_default_names_avoid_existing_indexes(ds: ld.LanceDataset) -> None:
    ds.create_scalar_index("id", "BTREE", "Name_idx")
    ds.create_scalar_index("Name", "BTREE")
    ds.create_scalar_index("Name", "BITMAP")
    ds.create_scalar_index("Name", "BTREE")
    assert [(name, kind) for name, kind, _, _ in segments(ds)] == [
        ("Name_idx", "BTree"),
        ("Name_idx_2", "BTree"),
        ("Name_idx_3", "Bitmap"),
    ]


def test_an_index_replaces_another_one_on_the_same_column(ds: ld.LanceDataset) -> None:
    ds.create_scalar_index("id", "BTREE", "i")
    before = files(ds)
    ds.create_scalar_index("id", "BITMAP", "i")
    assert segments(ds) == [("i", "Bitmap", ["id"], [0, 1])]
    assert before < files(ds)
    with pytest.raises(IndexExistsError, match=r"'i' already exists.*replace=True"):
        ds.create_scalar_index("id", "BITMAP", "i", replace=False)
    with pytest.raises(IndexExistsError, match="on another column"):
        ds.create_scalar_index("Name", "BITMAP", "i")
    assert ds.version == 3


def test_an_untrained_index_covers_nothing(ds: ld.LanceDataset) -> None:
    ds.create_scalar_index("id", "BTREE", train=False)
    assert segments(ds) == [("id_idx", "BTree", ["id"], [])]
    found = ds.stats.index_stats("id_idx")
    assert (found["index_type"], found["segments"], found["num_unindexed_rows"]) == ("N/A", [{}], 10)
    assert ds.to_table(filter="id = 7")["id"].to_pylist() == [7]


def test_an_empty_table_can_have_an_index(place: str) -> None:
    ds = write(place, rows(count=0))
    ds.create_scalar_index("id", "BTREE")
    assert segments(ds) == [("id_idx", "BTree", ["id"], [])]


def test_dictionaries_are_indexed_by_value_if_supported(ds: ld.LanceDataset) -> None:
    with pytest.raises(NotIndexableError, match="'kind'"):
        ds.create_scalar_index("kind", "BTREE")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("nope", "BTREE"), UnknownColumnError, "'nope'.*id, Name"),
        (("side.nope", "BTREE"), UnknownColumnError, "nope"),
        (("side..x", "BTREE"), InvalidInputError, "path"),
        (("_rowid", "BTREE"), UnknownColumnError, "_rowid"),
        (("vector", "BTREE"), NotIndexableError, "BTree does not support column 'vector'"),
        (("side", "BITMAP"), NotIndexableError, "'side'"),
        (("list", "BTREE"), NotIndexableError, "'list'"),
        (("list.item", "BTREE"), NotIndexableError, "nested in a list"),
        (("id", "LABEL_LIST"), NotIndexableError, "'id'"),
        (("blob", "BTREE"), NotIndexableError, "blob"),
        (("id", "INVERTED"), NotIndexableError, "Inverted does not support column 'id'"),
        (("id", "NGRAM"), NotIndexableError, "NGram does not support column 'id'"),
        (("id", "FTS"), NotIndexableError, "Inverted"),
        (("Name", "RTREE"), NotIndexableError, "RTree does not support column 'Name'"),
        (("Name", "FM"), NotIndexableError, "FM"),
        (("vector", "IVF_PQ"), NotIndexableError, "IVF_PQ"),
        (("id", 7), InvalidInputError, "7"),
        (("id", IndexConfig("btree", 7)), InvalidInputError, "index_type"),  # type: ignore[arg-type]
        (("id", "BTREE", ""), InvalidInputError, "name"),
        (("id", "BTREE", "__lance_frag_reuse"), InvalidInputError, "__lance_frag_reuse"),
        ((["id", "Name"], "BTREE"), NotIndexableError, "several"),
        (([], "BTREE"), NotIndexableError, "one column"),
        ((None, "BTREE"), NotIndexableError, "one column"),
        ((7, "BITMAP"), NotIndexableError, "one column"),
    ],
)
def test_unsupported_columns_are_rejected_by_name(
    ds: ld.LanceDataset, arguments: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        ds.create_scalar_index(*arguments)
    assert (ds.latest_version, files(ds)) == (1, set())


@pytest.mark.parametrize(
    "more",
    [
        {"fragment_ids": [0]},
        {"index_uuid": "x"},
        {"progress": 7},
        {"progress_callback": 7},
        {"no_such_parameter": 1},
        {"transaction_properties": {"a": 1}},
    ],
)
def test_invalid_arguments_leave_nothing(ds: ld.LanceDataset, more: dict[str, Any]) -> None:
    with pytest.raises(LanceDuckError):
        ds.create_scalar_index("id", "BTREE", **more)
    assert (ds.latest_version, files(ds)) == (1, set())


def test_an_exception_in_progress_stops_the_build(ds: ld.LanceDataset) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ds.create_scalar_index("id", "BTREE", progress=stop)
    assert (ds.latest_version, files(ds)) == (1, set())


def test_progress_reports_the_build_steps(ds: ld.LanceDataset) -> None:
    told: list[IndexProgress] = []
    ds.create_scalar_index("id", "BTREE", progress_callback=told.append)
    assert told[0] == IndexProgress("start", "load_data", 0, 10, "rows")
    assert told[-1] == IndexProgress("complete", "load_data", 10, 10, "rows")
    assert (told[0].fraction, told[-1].fraction, IndexProgress("start", "x").fraction) == (0, 1, None)


def test_index_transactions_have_messages_and_properties(ds: ld.LanceDataset) -> None:
    uuid = UUID(int=7)
    ds.create_scalar_index("id", "BTREE", index_uuid=uuid, commit_message="why", transaction_properties={"a": "b"})
    done = ds.read_transaction(2)
    assert done.commit_message == "why"
    assert (done.transaction_properties or {})["a"] == "b"
    assert isinstance(done.operation, ld.LanceOperation.CreateIndex)
    (made,) = done.operation.new_indices
    assert (made.uuid, made.name, made.fragment_ids, made.dataset_version) == (str(uuid), "id_idx", {0, 1}, 1)
    assert {f"{ds.uri}/_indices/{uuid}/{file.path}" for file in made.files or ()} == files(ds)
    with pytest.raises(InvalidInputError, match="an index segment already has uuid"):
        ds.create_scalar_index("id", "BTREE", index_uuid=uuid)
    ds.drop_index("id_idx", commit_message="gone")
    assert ds.read_transaction(3).commit_message == "gone"


# Dropping, warming.


def test_a_dropped_index_remains_in_older_versions(ds: ld.LanceDataset) -> None:
    ds.create_scalar_index("id", "BTREE")
    ds.drop_index("id_idx")
    assert segments(ds) == []
    old = ld.dataset(ds.uri, 2)
    assert old.to_table(filter="id = 3")["id"].to_pylist() == [3]
    with pytest.raises(IndexNotFoundError, match=r"'id_idx'.*none"):
        ds.drop_index("id_idx")


def test_an_index_is_warmed(ds: ld.LanceDataset) -> None:
    ds.create_scalar_index("id", "BTREE")
    (segment,) = ds.list_indices()
    ds.prewarm_index("id_idx")
    ds.prewarm_index("id_idx", index_segments=[segment["uuid"]])
    for bad, error in (
        ({"name": "nope"}, IndexNotFoundError),
        ({"name": "id_idx", "index_segments": [UUID(int=1)]}, IndexNotFoundError),
        ({"name": "id_idx", "index_segments": ["x"]}, InvalidInputError),
        ({"name": "id_idx", "with_position": True}, UnsupportedError),
    ):
        with pytest.raises(error):
            ds.prewarm_index(**bad)  # type: ignore[arg-type]


# Races.


def lose(monkeypatch: pytest.MonkeyPatch, ds: ld.LanceDataset, *others: Callable[[ld.LanceDataset], Any]) -> list[Any]:
    """Let others change the table after each build; return the built segments."""
    built: list[Any] = []
    build, coming = segment_orders.build_segment, list(others)

    def slow(*arguments: Any, **more: Any) -> Any:
        made = build(*arguments, **more)
        built.append(made)
        if coming:
            coming.pop(0)(ld.dataset(ds.uri, storage_options=OPTIONS))
        return made

    monkeypatch.setattr(segment_orders, "build_segment", slow)
    return built


def test_the_last_of_two_concurrent_creators_wins(ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(monkeypatch, ds, lambda other: other.create_scalar_index("id", "BITMAP", "i"))
    ds.create_scalar_index("id", "BTREE", "i")
    assert segments(ds) == [("i", "BTree", ["id"], [0, 1])]
    assert ds.version == 3


def test_a_built_index_is_reused_after_a_conflict_if_still_valid(
    ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others(other: ld.LanceDataset) -> None:
        other.delete("id = 3")
        write(other.uri, rows(10, 5), mode="append")
        other.checkout_latest()
        other.drop_index("i")
        monkeypatch.setattr(segment_orders, "build_segment", None)
        other.commit_existing_index_segments("i", "id", [apart])

    apart = ds.create_index_uncommitted("id", "BTREE", "i", fragment_ids=[0, 1])
    ds.create_scalar_index("id", "BTREE", "i")
    built = lose(monkeypatch, ds, others)
    ds.create_scalar_index("id", "BTREE", "i")
    assert len(built) == 1
    assert segments(ds) == [("i", "BTree", ["id"], [0, 1])]
    assert [i["uuid"] for i in ds.list_indices()] == [str(built[0].uuid)]
    assert ds.index_statistics("i")["num_unindexed_rows"] == 5
    ds.validate()


def test_an_invalidated_index_is_rebuilt_after_a_conflict(ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    ds.delete("id = 3")
    built = lose(monkeypatch, ds, lambda other: other.optimize.compact_files())
    ds.create_scalar_index("id", "BTREE")
    assert len(built) == 2
    (found,) = segments(ds)
    assert found[3] == ds.fragment_ids()
    assert {path.split("/")[-2] for path in files(ds)} == {str(built[1].uuid)}


def test_a_failed_creator_leaves_no_files(ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(monkeypatch, ds, lambda other: other.drop_columns(["id"]))
    with pytest.raises(LanceDuckError):
        ds.create_scalar_index("id", "BTREE")
    assert files(ds) == set()
    ds.checkout_latest()
    built = lose(monkeypatch, ds, lambda other: write(other.uri, rows(), mode="overwrite"))
    with pytest.raises(LanceDuckError):
        ds.create_scalar_index("Name", "BTREE")
    assert built
    assert files(ds) == set()


def test_without_replace_a_concurrent_index_wins(ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(monkeypatch, ds, lambda other: other.create_scalar_index("id", "BITMAP", "i"))
    with pytest.raises(IndexExistsError):
        ds.create_scalar_index("id", "BTREE", "i", replace=False)
    assert len(files(ds)) == 1


# Segments built apart.


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
@pytest.mark.parametrize("stable", [False, True])
def test_segments_built_separately_form_one_index(place: str, kind: str, stable: bool) -> None:
    ds = write(place, rows(count=20), enable_stable_row_ids=stable)
    parts = [
        pickle.loads(pickle.dumps(ld.dataset(ds.uri).create_index_uncommitted("id", kind, "i", fragment_ids=[n])))
        for n in range(4)
    ]
    assert ds.latest_version == 1
    merged = ds.merge_existing_index_segments(parts[1:3])
    assert merged.fragment_ids == {1, 2}
    assert ds.commit_existing_index_segments("i", "id", [parts[0], merged]) is ds
    ds.commit_existing_index_segments("i", "id", [parts[3]])
    assert [ids for *_, ids in segments(ds)] == [[0], [1, 2], [3]]
    whole = ds.create_index_uncommitted("id", kind, "i", fragment_ids=[0, 1, 2], replace=True)
    ds.commit_existing_index_segments("i", "id", [whole])
    assert sorted(ids for *_, ids in segments(ds)) == [[0, 1, 2], [3]]
    assert ds.to_table(filter="id IN (3, 17)")["id"].to_pylist() == [3, 17]
    ds.validate()


def test_incompatible_segments_are_rejected(ds: ld.LanceDataset) -> None:
    first, second = (ds.create_index_uncommitted("id", "BTREE", "i", fragment_ids=[n]) for n in range(2))
    both = ds.create_index_uncommitted("id", "BTREE", "i", fragment_ids=[0, 1])
    name = ds.create_index_uncommitted("Name", "BTREE", fragment_ids=[1])
    assert name.name == "Name_idx"
    for bad in ([], [first, first], [first, both], [first, name], [7]):
        with pytest.raises(InvalidInputError):
            ds.commit_existing_index_segments("i", "id", bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError):
            ds.merge_existing_index_segments(bad)  # type: ignore[arg-type]
    for column, index in (("Name", "i"), ("id", ""), ("id", "\ud800"), ("nope", "i")):
        with pytest.raises(InvalidInputError):
            ds.commit_existing_index_segments(index, column, [first])
    ds.commit_existing_index_segments("i", "id", [both])
    with pytest.raises(IndexExistsError, match="covers more"):
        ds.commit_existing_index_segments("i", "id", [second])
    with pytest.raises(IndexExistsError, match="another column"):
        ds.commit_existing_index_segments("i", "Name", [name])
    for wrong in (None, [9]):
        with pytest.raises(InvalidInputError, match="fragment"):
            ds.create_index_uncommitted("id", "BTREE", "j", fragment_ids=wrong)
    with pytest.raises(IndexExistsError):
        ds.create_index_uncommitted("id", "BTREE", "i", fragment_ids=[0])
    with pytest.raises(UnsupportedError, match="commit_existing_index_segments"):
        ds.merge_index_metadata(both.uuid, "BTREE")


def test_fragments_changed_since_the_build_are_not_covered(ds: ld.LanceDataset) -> None:
    parts = [ds.create_index_uncommitted("id", "BTREE", "i", fragment_ids=[n]) for n in range(2)]
    fragment = ds.get_fragment(1)
    assert fragment is not None
    new = pa.table({"Name": [f"s{i % 3}" for i in range(5)], "id": np.arange(105, 110)}).slice(0, 3)
    updated, fields = fragment.update_columns(new, "Name")
    operation = ld.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    ld.LanceDataset.commit(ds.uri, operation, 1, storage_options=OPTIONS)
    ds.checkout_latest()
    assert ds.merge_existing_index_segments(parts).fragment_ids == {0}
    ds.commit_existing_index_segments("i", "id", parts)
    assert ds.to_table(filter="id IN (2, 7, 107)")["id"].to_pylist() == [2, 107, 107]
    assert [ids for *_, ids in segments(ds)] == [[0]]


def test_segments_of_a_removed_version_are_rejected(ds: ld.LanceDataset) -> None:
    part = ds.create_index_uncommitted("id", "BTREE", "i", fragment_ids=[0, 1])
    part.dataset_version = 77
    with pytest.raises(InvalidInputError, match=r"version 77.*build the segment again"):
        ds.commit_existing_index_segments("i", "id", [part])


def test_kinds_without_listed_parameters_reject_all_parameters(
    ds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, registry.KindEntry.of(PlainKind())))
    for kind in ("Bitmap", "Plain"):
        with pytest.raises(WrongTypeError, match=f"^index of kind {kind}: unknown parameter 'size'"):
            ds.create_scalar_index("id", kind, size=3)


def test_an_unknown_kind_is_rejected_with_the_documented_names(ds: ld.LanceDataset) -> None:
    with pytest.raises(NotIndexableError, match="did you mean 'LABEL_LIST'"):
        ds.create_scalar_index("list", "LABELLISTS")
