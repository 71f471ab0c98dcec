"""Each change of LanceDB's client leaves the same table as a local LanceDB that does the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import lancedb.index as kinds
import pyarrow as pa
import pytest

from lance_duck.serve.run import Server

ROWS = [{"id": i, "s": f"w{i % 7} duck", "tags": ["a", str(i)], "vector": [float(i), 1.0] * 4} for i in range(300)]
NEW = [{"id": each, "s": "new", "tags": None, "vector": [0.5] * 8} for each in (3, 9, 4000)]
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("vector", pa.list_(pa.float32(), 8))])
WAIT = timedelta(seconds=30)

Change = Callable[[Any], Any]


@pytest.fixture
def local(tmp_path: Path) -> Any:
    """A local LanceDB."""
    return lancedb.connect(tmp_path / "local")


@pytest.fixture
def served(server: Server, tmp_path: Path) -> Any:
    """A local LanceDB in the folder of the server, which shows what the server wrote."""
    return lancedb.connect(tmp_path / "served")


def state(db: Any, name: str = "t") -> Any:
    """Return all that a change may change in a table."""
    table = db.open_table(name)
    indexes = sorted((i.name, i.index_type, tuple(i.columns), i.num_indexed_rows) for i in table.list_indices())
    tags = {tag: table.tags.get_version(tag) for tag in table.tags.list()}
    rows = table.to_arrow()
    return table.version, len(table.list_versions()), rows.schema, rows.to_pylist(), indexes, tags


def table_of(db: Any) -> Any:
    return db.open_table("t")


def merge(db: Any) -> Any:
    return table_of(db).merge_insert("id")


def restore_a_checkout(db: Any) -> Any:
    table = table_of(db)
    table.delete("id > 5")
    table.checkout(1)
    table.restore()
    return table.version


def change_tags(db: Any) -> Any:
    table = table_of(db)
    table.delete("id > 5")
    table.tags.create("one", 1)
    table.tags.create("two", 2)
    table.tags.create("gone", 2)
    table.tags.update("one", 2)
    table.tags.delete("gone")
    return table.tags.get_version("one")


def restore_a_tag(db: Any) -> Any:
    table = table_of(db)
    table.tags.create("one", 1)
    table.delete("true")
    return table.restore("one")


def replace_an_index(db: Any) -> Any:
    table_of(db).create_index("id", config=kinds.BTree(), wait_timeout=WAIT)
    table_of(db).create_index("id", config=kinds.Bitmap(), wait_timeout=WAIT)


def drop_an_index(db: Any) -> Any:
    table_of(db).create_index("id", config=kinds.BTree(), name="mine", wait_timeout=WAIT)
    table_of(db).prewarm_index("mine")
    return table_of(db).drop_index("mine"), table_of(db).index_stats("mine")


def index_of(column: str, config: Any) -> Change:
    """Return a change that builds an index and describes it."""

    def change(db: Any) -> Any:
        table = table_of(db)
        table.create_index(column, config=config, name="mine", wait_timeout=WAIT)
        table.add(NEW)
        return table.index_stats("mine")

    return change


CHANGES: dict[str, Change] = {
    "add": lambda db: table_of(db).add(NEW),
    "add a part of the columns": lambda db: table_of(db).add([{"id": 7000, "vector": [1.0] * 8}]),
    "add no rows": lambda db: table_of(db).add(pa.table({"id": pa.array([], pa.int64())})),
    "add many batches": lambda db: table_of(db).add(pa.table({"id": pa.chunked_array([[i] for i in range(50)])})),
    "add with overwrite": lambda db: table_of(db).add(NEW, mode="overwrite"),
    "create with overwrite": lambda db: db.create_table("t", NEW, mode="overwrite").version,
    "create what exists": lambda db: db.create_table("t", ROWS, exist_ok=True).version,
    "update a text": lambda db: table_of(db).update("id = 5", {"s": "it's"}),
    "update a vector": lambda db: table_of(db).update("id < 5", {"vector": [2.0] * 8}),
    "update with SQL": lambda db: table_of(db).update(values_sql={"id": "id + 1000"}),
    "update no row": lambda db: table_of(db).update("id = -1", {"s": "y"}),
    "delete": lambda db: table_of(db).delete("id IN (1, 2, 3)"),
    "delete no row": lambda db: table_of(db).delete("id = -1"),
    "delete all rows": lambda db: table_of(db).delete("true"),
    "upsert": lambda db: merge(db).when_matched_update_all().when_not_matched_insert_all().execute(NEW),
    "insert new rows": lambda db: merge(db).when_not_matched_insert_all().execute(NEW),
    "update under a condition": lambda db: merge(db).when_matched_update_all(where="target.id > 5").execute(NEW),
    "delete unmatched rows": lambda db: merge(db).when_not_matched_by_source_delete("id > 270").execute(NEW),
    "replace a range": lambda db: (
        merge(db)
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete("id < 100")
        .execute(NEW)
    ),
    "merge by two keys": lambda db: (
        table_of(db).merge_insert(["id", "s"]).when_not_matched_insert_all().execute(NEW, timeout=WAIT)
    ),
    "merge without an index": lambda db: merge(db).when_not_matched_insert_all().use_index(False).execute(NEW),
    "add columns": lambda db: table_of(db).add_columns({"y": "id + 1", "z": "upper(s)"}),
    "add a null column": lambda db: table_of(db).add_columns(pa.field("n", pa.int32())),
    "add null columns": lambda db: table_of(db).add_columns(
        [pa.field("w", pa.list_(pa.float32(), 2)), pa.field("p", pa.struct([("a", pa.timestamp("us", "UTC"))]))]
    ),
    "rename a column": lambda db: table_of(db).alter_columns({"path": "s", "rename": "text"}),
    "cast a column": lambda db: table_of(db).alter_columns({"path": "id", "data_type": pa.int32()}),
    "cast a vector": lambda db: table_of(db).alter_columns({"path": "vector", "data_type": pa.list_(pa.float16(), 8)}),
    "forbid nulls": lambda db: table_of(db).alter_columns({"path": "id", "nullable": False}),
    "alter two columns": lambda db: table_of(db).alter_columns(
        {"path": "s", "rename": "text"}, {"path": "id", "rename": "key"}
    ),
    "set metadata of a field": lambda db: table_of(db).update_field_metadata(
        {"path": "id", "metadata": {"unit": "m", "gone": None}}
    ),
    "replace metadata of a field": lambda db: table_of(db).update_field_metadata(
        {"path": "id", "metadata": {"unit": "m"}, "replace": True}
    ),
    "drop columns": lambda db: table_of(db).drop_columns(["s", "tags"]),
    "restore": lambda db: (table_of(db).delete("true"), table_of(db).restore(1)),
    "restore a checkout": restore_a_checkout,
    "restore a tag": restore_a_tag,
    "change tags": change_tags,
    "replace an index": replace_an_index,
    "drop an index": drop_an_index,
    "BTree": index_of("id", kinds.BTree()),
    "Bitmap": index_of("s", kinds.Bitmap()),
    "LabelList": index_of("tags", kinds.LabelList()),
    "FTS": index_of("s", kinds.FTS()),
    "FTS with settings": index_of(
        "s",
        kinds.FTS(
            with_position=True,
            base_tokenizer="ngram",
            ngram_min_length=2,
            ngram_max_length=4,
            prefix_only=True,
            stem=False,
            remove_stop_words=False,
            custom_stop_words=["the"],
            max_token_length=None,
            block_size=256,
        ),
    ),
    "IvfFlat": index_of("vector", kinds.IvfFlat()),
    "IvfFlat by cosine": index_of("vector", kinds.IvfFlat(distance_type="cosine", num_partitions=2)),
    "IvfSq": index_of("vector", kinds.IvfSq(num_partitions=2)),
    "IvfPq": index_of("vector", kinds.IvfPq(num_partitions=2, num_sub_vectors=2)),
    "IvfPq of 4 bits": index_of("vector", kinds.IvfPq(distance_type="dot", num_sub_vectors=2, num_bits=4)),
    "IvfRq": index_of("vector", kinds.IvfRq(num_partitions=2)),
    "HnswSq": index_of("vector", kinds.HnswSq(num_partitions=1, m=5, ef_construction=30)),
    "HnswFlat": index_of("vector", kinds.HnswFlat(num_partitions=1)),
    "old call of an index": lambda db: table_of(db).create_scalar_index("id", index_type="BITMAP"),
    "old call of a text index": lambda db: table_of(db).create_fts_index("s", replace=True),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:create_fts_index:UserWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_has_the_same_effect_as_locally(remote: Any, local: Any, served: Any, name: str) -> None:
    for db in (remote, local):
        db.create_table("t", ROWS)
    answers = [CHANGES[name](db) for db in (remote, local)]
    assert repr(answers[0]) == repr(answers[1])
    assert state(served) == state(local)


FAILURES: dict[str, Change] = {
    "create what exists": lambda db: db.create_table("t", ROWS),
    "create with other columns": lambda db: db.create_table("t", [{"a": 1}], exist_ok=True),
    "add other columns": lambda db: table_of(db).add(pa.table({"other": [1]})),
    "update an unknown column": lambda db: table_of(db).update("id = 1", {"nope": 1}),
    "update with broken SQL": lambda db: table_of(db).update(values_sql={"s": "lower("}),
    "delete by an unknown column": lambda db: table_of(db).delete("nope = 1"),
    "delete without a condition": lambda db: table_of(db).delete(""),
    "merge without an action": lambda db: merge(db).execute(NEW),
    "merge by an unknown key": lambda db: table_of(db).merge_insert("nope").when_matched_update_all().execute(NEW),
    "merge equal keys": lambda db: merge(db).when_matched_update_all().execute([NEW[0], NEW[0]]),
    "add a column twice": lambda db: table_of(db).add_columns({"s": "id"}),
    "cast to another kind": lambda db: table_of(db).alter_columns({"path": "id", "data_type": pa.float64()}),
    "alter an unknown column": lambda db: table_of(db).alter_columns({"path": "nope", "nullable": True}),
    "drop an unknown column": lambda db: table_of(db).drop_columns(["nope"]),
    "restore an unknown version": lambda db: table_of(db).restore(4000),
    "tag an unknown version": lambda db: table_of(db).tags.create("v", 4000),
    "move an unknown tag": lambda db: table_of(db).tags.update("v", 1),
    "delete an unknown tag": lambda db: table_of(db).tags.delete("v"),
    "index an unknown column": lambda db: table_of(db).create_index("nope", config=kinds.BTree()),
    "index texts as vectors": lambda db: table_of(db).create_index("s", config=kinds.IvfFlat()),
    "drop an unknown index": lambda db: table_of(db).drop_index("nope"),
    "open an unknown table": lambda db: db.open_table("nope").add(NEW),
    "drop an unknown table": lambda db: db.drop_table("nope"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_change_changes_nothing(remote: Any, local: Any, served: Any, name: str) -> None:
    for db in (remote, local):
        db.create_table("t", ROWS)
    before = state(served)
    for db in (remote, local):
        with pytest.raises((ValueError, RuntimeError)):
            FAILURES[name](db)
    assert state(served) == before


def test_a_table_is_created_without_rows(remote: Any, local: Any, served: Any) -> None:
    for db in (remote, local):
        db.create_table("t", schema=SCHEMA)
    assert state(served) == state(local)


def test_lists_of_any_length_stay_lists(remote: Any, local: Any, served: Any) -> None:
    rows = pa.table({"lists": pa.array([[1.0], [1.0, 2.0]], pa.list_(pa.float32()))})
    for db in (remote, local):
        db.create_table("t", rows)
    assert state(served) == state(local)


def test_tables_are_renamed_and_dropped(remote: Any) -> None:
    remote.create_table("t", ROWS)
    remote.rename_table("t", "u")
    assert remote.list_tables().tables == ["u"]
    assert remote.open_table("u").count_rows() == len(ROWS)
    remote.drop_table("u")
    assert remote.list_tables().tables == []


def test_namespaces_hold_tables(remote: Any, local: Any) -> None:
    def change(db: Any) -> Any:
        db.create_namespace(["a"])
        db.create_namespace(["a", "b"], properties={"owner": "me"})
        db.create_table("t", ROWS, namespace_path=["a", "b"])
        table = db.open_table("t", namespace_path=["a", "b"])
        table.delete("id > 3")
        found = [
            db.describe_namespace(["a", "b"]).properties,
            db.list_namespaces().namespaces,
            db.list_namespaces(["a"]).namespaces,
            db.list_tables(namespace_path=["a", "b"]).tables,
            table.count_rows(),
        ]
        with pytest.raises(Exception, match="not empty"):
            db.drop_namespace(["a", "b"])
        db.drop_table("t", namespace_path=["a", "b"])
        db.drop_namespace(["a", "b"])
        return [*found, db.list_namespaces(["a"]).namespaces]

    assert change(remote) == change(local)
    remote.create_namespace(["a"], mode="exist_ok")
    remote.drop_namespace(["a"], behavior="cascade")
    remote.drop_namespace(["a"], mode="skip")
    assert remote.list_namespaces().namespaces == []


def test_a_large_upload_for_a_table_that_exists_is_answered_early(remote: Any) -> None:
    """The client sends more than the sockets hold, while the server answers already."""
    rows = pa.table({"id": pa.array(range(1_000_000), pa.int64())})
    remote.create_table("t", rows)
    assert remote.create_table("t", rows, exist_ok=True).version == 1
    with pytest.raises(ValueError, match="already exists"):
        remote.create_table("t", rows)
    assert remote.open_table("t").count_rows() == len(rows)


def test_branches_have_their_own_versions(remote: Any, local: Any, served: Any) -> None:
    def change(db: Any) -> Any:
        table = db.create_table("t", ROWS)
        table.delete("id > 100")
        branch = table.branches.create("dev", from_version=1)
        branch.add(NEW)
        branch.delete("id > 200")
        merged = branch.merge_insert("id").when_matched_update_all().execute(NEW)
        branch.update("id = 1", {"s": "x"})
        branch.add_columns({"y": "id + 1"})
        branch.alter_columns({"path": "y", "rename": "z"})
        branch.drop_columns(["tags"])
        branch.create_index("id", config=kinds.BTree(), name="mine", wait_timeout=WAIT)
        found = [branch.count_rows(), branch.version, branch.schema, merged.version, len(branch.list_versions())]
        found += [len(branch.list_indices()), branch.index_stats("mine").num_indexed_rows]
        branch.drop_index("mine")
        branch.add_columns(pa.field("n", pa.int32()))
        table.branches.create("other", from_ref="dev")
        table.branches.create("gone")
        table.branches.delete("gone")
        rows = table.branches.checkout("dev").search().limit(1000).to_arrow()
        return [*found, rows, sorted(table.branches.list()), table.count_rows(), table.version]

    assert change(remote) == change(local)
    assert state(served) == state(local)


async def changed_async(db: Any) -> Any:
    """Return the answers of all changes of the async client, except those of indexes."""
    table = await db.create_table("t", ROWS)
    key = table.merge_insert("id")
    return [
        await table.add(NEW),
        await table.update({"s": "x"}, where="id < 10"),
        await table.update(updates_sql={"id": "id + 1"}),
        await table.delete("id > 250"),
        await key.when_matched_update_all().when_not_matched_insert_all().execute(NEW),
        await table.add_columns({"y": "id + 1"}),
        await table.add_columns(pa.field("n", pa.int32())),
        await table.alter_columns({"path": "y", "rename": "z"}),
        await table.drop_columns(["z"]),
        await table.create_index("id", config=kinds.BTree(), wait_timeout=WAIT),
        await table.index_stats("id_idx"),
        await table.tags.create("v", 3),
        await table.restore(2),
        await table.version(),
        await db.create_namespace(["a"]) and None,
        (await db.list_namespaces()).namespaces,
        await db.drop_namespace(["a"]) and None,
    ]


def test_the_async_client_changes_tables(server: Server, served: Any, local: Any, tmp_path: Path) -> None:
    async def run() -> None:
        remote = await lancedb.connect_async("db://test", api_key="any", host_override=server.url)
        own = await lancedb.connect_async(tmp_path / "local")
        assert [repr(each) for each in await changed_async(remote)] == [repr(each) for each in await changed_async(own)]

    asyncio.run(run())
    assert state(served) == state(local)
