"""Awaitable datasets and connections."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing
from functools import wraps
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld

BATCH = pa.record_batch({"id": pa.array([1, 2, 3])})


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a coroutine as a test."""

    @wraps(test)
    def run(*arguments: Any, **options: Any) -> None:
        asyncio.run(test(*arguments, **options))

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = {"id": range(10), "v": pa.array([[float(i), 0.0] for i in range(10)], pa.list_(pa.float32(), 2))}
    ld.write_dataset(pa.table(rows), tmp_path / "t.lance", max_rows_per_file=4)
    return tmp_path


def gated(gate: threading.Event) -> pa.RecordBatchReader:
    """Return rows that are read only when an event is set."""

    def batches() -> Iterator[pa.RecordBatch]:
        assert gate.wait(60)
        yield BATCH

    return pa.RecordBatchReader.from_batches(BATCH.schema, batches())


def endless(started: threading.Event) -> pa.RecordBatchReader:
    """Return rows without end."""

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            yield BATCH
            started.set()

    return pa.RecordBatchReader.from_batches(BATCH.schema, batches())


async def ticks(until: asyncio.Task[Any], gate: threading.Event) -> int:
    """Count turns of the loop until a task ends. Opens the gate after 100 turns."""
    count = 0
    while not until.done():
        count += 1
        if count == 100:
            gate.set()
        await asyncio.sleep(0)
    return count


async def occurs(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 60)


@in_loop
async def test_methods_of_a_dataset_are_awaited(folder: Path) -> None:
    ds = await ld.dataset_async(folder / "t.lance")
    assert ds.schema.names == ["id", "v"]
    assert (await ds.to_table(["id"], filter="id > 7"))["id"].to_pylist() == [8, 9]
    assert await ds.count_rows("id < 3") == 3
    assert (await ds.search([2.0, 0.0], 2, "v"))["id"].to_pylist()[0] == 2
    await ds.add({"id": [10]})
    await ds.insert({"id": [11]})
    assert await ds.delete("id = 0") == {"num_deleted_rows": 1}
    assert (ds.version, await ds.count_rows()) == (4, 11)
    old = await ds.checkout_version(1)
    assert isinstance(old, ld.AsyncDataset)
    assert await old.count_rows() == 10
    assert (await ds.list_indices()) == []
    assert ds.sync.count_rows() == 11
    assert "AsyncDataset of <LanceDataset" in repr(ds)
    assert {"to_table", "merge_insert"} <= set(dir(ds))


@in_loop
async def test_parts_of_a_dataset_are_awaited(folder: Path) -> None:
    ds = await ld.dataset_async(folder / "t.lance")
    await ds.tags.create("first", 1)
    assert (await ds.tags.list())["first"]["version"] == 1
    branch = await ds.create_branch("b")
    assert isinstance(branch, ld.AsyncDataset)
    assert list(await ds.branches.list()) == ["b"]
    assert (await ds.optimize.compact_files()).fragments_removed == 3
    assert (await ds.optimize()).fragments_removed == 0
    assert (ds.version, await ds.count_rows()) == (3, 10)
    merge = (await ds.merge_insert("id")).when_not_matched_insert_all().conflict_retries(3)
    assert (await merge.execute({"id": [9, 10]}))["num_inserted_rows"] == 1
    async with await ds.prepare_search("v", k=1, columns=["id"]) as near:
        assert (await near([3.0, 0.0]))["id"].to_pylist() == [3]
        assert (await near.ids([3.0, 0.0]))[1].tolist() == [0.0]
    with pytest.raises(ld.InvalidInputError, match="it is closed"):
        await near([3.0, 0.0])
    one = await ds.prepare("id = ?", columns=["id"])
    assert await one.rows(10) == [(10,)]
    with pytest.raises(AttributeError, match="'Tags' object has no attribute 'creat'; did you mean 'create'"):
        ds.tags.creat  # noqa: B018


@in_loop
async def test_prepared_statements_are_awaited(folder: Path) -> None:
    async with ld.connect_async(folder) as con:
        statement = await con.prepare("SELECT id FROM t WHERE id > ? ORDER BY id")
        found = [await (await statement(parameters)).fetchall() for parameters in ([7], [8])]
        assert found == [[(8,), (9,)], [(9,)]]
        assert await statement.execute([9]) is con
        await statement.close()
        with pytest.raises(ld.InvalidInputError, match="the prepared statement is closed"):
            await statement([7])


@in_loop
async def test_batches_are_iterated(folder: Path) -> None:
    async with ld.dataset_async(folder / "t.lance") as ds, ld.connect_async(folder) as con:
        found = [batch["id"].to_pylist() async for batch in ds.to_batches(["id"], "id < 6", batch_size=3)]
        assert [number for batch in found for number in batch] == [0, 1, 2, 3, 4, 5]
        assert sum([batch.num_rows async for batch in ds]) == 10
        async with aclosing(con.to_batches("SELECT id FROM t WHERE id > ? ORDER BY id", [5], 2)) as batches:
            async for batch in batches:
                assert batch["id"].to_pylist() == [6, 7]
                break
        rows = [batch.num_rows async for batch in con.to_batches("FROM range(5000)", rows_per_batch=2048)]
        assert sum(rows) == 5000
        assert [batch async for batch in con.to_batches("CREATE TABLE u (i INTEGER)")] == []


@in_loop
async def test_statements_are_awaited(folder: Path) -> None:
    async with ld.connect_async(folder) as con:
        await con.execute("INSERT INTO t (id) VALUES (?)", [20])
        assert await (await con.execute("SELECT count(*) FROM t")).fetchall() == [(11,)]
        relation = await con.sql("SELECT id FROM t WHERE id > 8 ORDER BY id")
        assert await relation.fetchall() == [(9,), (20,)]
        assert await (await relation.limit(1)).fetchall() == [(9,)]
        await con.register("rows", pa.table({"n": [1, 2]}))
        assert await (await con.execute("SELECT sum(n) FROM rows")).fetchone() == (3,)
        await con.begin()
        await con.execute("DELETE FROM t")
        await con.rollback()
        other = await con.cursor()
        assert await (await other.execute("SELECT count(*) FROM t")).fetchone() == (11,)
        await other.close()
    with pytest.raises(duckdb.ConnectionException):
        await con.execute("SELECT 1")


@in_loop
async def test_the_loop_goes_on_while_a_call_waits(folder: Path) -> None:
    ds, con = await ld.dataset_async(folder / "t.lance"), await ld.connect_async(folder)
    for make in (
        lambda gate: ds.insert(gated(gate)),
        lambda gate: asyncio.wait_for(_selected(con, gated(gate)), 60),
    ):
        gate = threading.Event()
        task = asyncio.ensure_future(make(gate))
        assert await ticks(task, gate) >= 100
        await task
    assert await ds.count_rows() == 13
    await con.close()


async def _selected(con: Any, rows: pa.RecordBatchReader) -> Any:
    await con.register("rows", rows)
    return await (await con.execute("SELECT count(*) FROM rows")).fetchall()


@in_loop
async def test_a_cancelled_change_is_not_published(folder: Path) -> None:
    ds, started = await ld.dataset_async(folder / "t.lance"), threading.Event()
    task = asyncio.ensure_future(ds.insert(endless(started)))
    await occurs(started)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ds.checkout_latest()
    assert (ds.version, await ds.count_rows()) == (1, 10)
    assert len(list((folder / "t.lance" / "data").iterdir())) == 3
    await ds.insert({"id": [1]})
    assert ds.version == 2


@in_loop
async def test_a_cancelled_statement_leaves_a_usable_connection(folder: Path) -> None:
    async with ld.connect_async(folder) as con:
        started = threading.Event()
        task = asyncio.ensure_future(_selected(con, endless(started)))
        await occurs(started)
        waiting = asyncio.ensure_future(con.execute("SELECT 2"))
        await asyncio.sleep(0)
        waiting.cancel()
        task.cancel()
        for each in (task, waiting):
            with pytest.raises(asyncio.CancelledError):
                await each
        assert await (await con.execute("SELECT count(*) FROM t")).fetchall() == [(10,)]


@in_loop
async def test_errors_reach_the_task(folder: Path) -> None:
    with pytest.raises(ld.NotFoundError):
        await ld.dataset_async(folder / "no.lance")
    ds, con = await ld.dataset_async(folder / "t.lance"), await ld.connect_async(folder)
    with pytest.raises(ld.UnknownColumnError):
        await ds.to_table(["x"])
    with pytest.raises(AttributeError, match="count_row"):
        _ = ds.count_row
    with pytest.raises(duckdb.CatalogException):
        await con.execute("FROM nothing")
    assert await (await con.execute("SELECT 1")).fetchall() == [(1,)]
    await con.close()


@in_loop
async def test_many_calls_run_together(folder: Path) -> None:
    ds = await ld.dataset_async(folder / "t.lance")
    async with ld.connect_async(folder) as con:

        async def counted(least: int) -> int:
            cursor = await con.cursor()
            ((count,),) = await (await cursor.execute("SELECT count(*) FROM t WHERE id >= ?", [least])).fetchall()
            await cursor.close()
            return int(count)

        assert await asyncio.gather(*map(counted, range(10))) == [10 - least for least in range(10)]
        assert await asyncio.gather(*(ds.count_rows(f"id >= {i % 10}") for i in range(60))) == [
            10 - i % 10 for i in range(60)
        ]


def test_signatures_and_documentation_are_those_of_the_methods() -> None:
    assert inspect.signature(ld.AsyncDataset.to_table) == inspect.signature(ld.LanceDataset.to_table)
    assert ld.AsyncConnection.execute.__doc__ == ld.Connection.execute.__doc__
    assert inspect.signature(ld.dataset_async) == inspect.signature(ld.dataset)
