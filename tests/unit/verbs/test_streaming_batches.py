from __future__ import annotations

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.commit import commit
from lance_duck.commit.operations import Append
from lance_duck.errors import IncompatibleError, InvalidInputError
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.verbs.streaming_batches import StreamBatch
from lance_duck.wire import flags


@pytest.fixture
def table(place: str, hasty: dict[str, str]) -> Snapshot:
    ld.write_dataset(pa.table({"a": [1]}), place, storage_options=hasty)
    return open_snapshot(place, storage_options=hasty)


def land(snapshot: Snapshot, batch: StreamBatch) -> Snapshot:
    return commit(snapshot, Append(()), guard=batch.guard, amend=batch.amend, properties=batch.properties)


def test_a_batch_counts_as_committed_if_a_later_one_is(table: Snapshot) -> None:
    after = land(table, StreamBatch("q", 3))
    assert after.config == {"lance.streaming.epoch.q": "3"}
    assert after.manifest.writer_flags & flags.TABLE_CONFIG
    transaction = open_snapshot(table.uri).transaction()
    assert transaction is not None
    assert transaction.transaction_properties == {"lance.streaming.queryId": "q", "lance.streaming.epochId": "3"}
    landed = {(stream, n): StreamBatch(stream, n).has_landed(after) for stream in "qr" for n in (2, 3, 4)}
    assert [key for key, there in landed.items() if there] == [("q", 2), ("q", 3)]
    assert not StreamBatch("q", 0).has_landed(table)


def test_a_batch_committed_elsewhere_is_rejected(table: Snapshot) -> None:
    land(table, StreamBatch("q", 0))
    with pytest.raises(IncompatibleError, match="batch 0 of stream q has been committed already"):
        land(table, StreamBatch("q", 0))
    assert land(table, StreamBatch("q", 1)).version == 3


def test_transactions_record_batches_missing_from_the_config(table: Snapshot) -> None:
    after = land(land(table, StreamBatch("q", 0)), StreamBatch("r", 7))
    cleared = ld.dataset(after.uri)
    cleared.delete_config_keys([f"lance.streaming.epoch.{stream}" for stream in "qr"])
    now = open_snapshot(table.uri)
    assert not now.config
    assert [StreamBatch("q", n).has_landed(now) for n in (0, 1)] == [True, False]
    assert [StreamBatch("r", n).has_landed(now) for n in (7, 8)] == [True, False]


def test_cleanup_keeps_committed_batch_numbers(table: Snapshot) -> None:
    land(land(table, StreamBatch("q", 5)), StreamBatch("r", 0))
    ld.dataset(table.uri).cleanup_old_versions(retain_versions=1)
    assert StreamBatch("q", 5).has_landed(open_snapshot(table.uri))


@pytest.mark.parametrize(("stream", "number"), [("", 0), ("q", -1)])
def test_a_stream_batch_requires_a_name_and_a_number(stream: str, number: int) -> None:
    with pytest.raises(InvalidInputError, match="batch of a stream: expected a name and a number from 0"):
        StreamBatch(stream, number)
