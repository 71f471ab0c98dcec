from __future__ import annotations

import pickle
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, IncompatibleError, InvalidInputError, RetryableError
from lance_duck.snapshot import Snapshot
from lance_duck.spark.io.staged_commit import Landing, newest
from lance_duck.spark.table_ref import TableRef
from lance_duck.verbs.streaming_batches import StreamBatch
from lance_duck.verbs.writing.settings import WriteSettings

ROWS = pa.table({"id": [1, 2, 3], "s": ["a", None, "c"]})
OTHERS = pa.table({"id": [4], "s": ["d"]})


@pytest.fixture
def place(tmp_path: Path) -> TableRef:
    return TableRef.of(tmp_path / "t")


def files(place: TableRef, folder: str = "data") -> set[str]:
    return {path.name for path in Path(place.uri, folder).glob("*")}


def rows(place: TableRef) -> list[int]:
    return place.dataset().to_table().column("id").to_pylist()


def travelled(landing: Landing) -> Landing:
    return pickle.loads(pickle.dumps(landing))


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_rows_of_several_tasks_form_a_table(place: TableRef, mode: str) -> None:
    landing = travelled(Landing.begin(place, ROWS.schema, mode))
    parts = [travelled(landing).write(table.to_batches()) for table in (OTHERS, ROWS)]

    after = travelled(landing).land([fragment for part in parts for fragment in part])

    assert after.version == 1
    assert rows(place) == [4, 1, 2, 3]


def test_rows_are_appended_or_replace_existing_rows(place: TableRef) -> None:
    ld.write_dataset(ROWS, place.uri)

    added = Landing.begin(place, OTHERS.schema)
    added.land(added.write(OTHERS.to_batches()))
    assert rows(place) == [1, 2, 3, 4]

    replacing = Landing.begin(place, pa.schema({"id": pa.int32()}), "overwrite")
    replacing.land(replacing.write([pa.record_batch({"id": pa.array([7], pa.int32())})]))
    assert place.dataset().to_table() == pa.table({"id": pa.array([7], pa.int32())})


def test_no_rows_create_an_empty_table_and_an_empty_version(place: TableRef) -> None:
    for version in (1, 2):
        landing = Landing.begin(place, ROWS.schema)
        assert landing.write([]) == ()
        assert landing.land([]).version == version
    assert place.dataset().schema == ROWS.schema
    assert rows(place) == []


def test_files_of_failed_attempts_are_removed(place: TableRef) -> None:
    ld.write_dataset(ROWS, place.uri)
    before = files(place)
    other, landing = Landing.begin(place, ROWS.schema), Landing.begin(place, ROWS.schema)
    landing.write(ROWS.to_batches())
    theirs = other.write(ROWS.to_batches())
    counted = landing.write(OTHERS.to_batches())
    (killed,) = (file.path for fragment in landing.write(ROWS.to_batches()) for file in fragment.files)
    Path(place.uri, "data", f"{killed}#123").write_bytes(b"half")
    Path(place.uri, "data", killed.removesuffix(".lance")).mkdir()
    Path(place.uri, "data", killed.removesuffix(".lance"), "01.blob").write_bytes(b"blob")

    landing.land(counted)

    assert files(place) == before | {f.path for part in (theirs, counted) for one in part for f in one.files}
    other.land(theirs)
    assert rows(place) == [1, 2, 3, 4, 1, 2, 3]


def test_a_change_is_committed_once(place: TableRef) -> None:
    ld.write_dataset(ROWS, place.uri)
    landing = Landing.begin(place, OTHERS.schema)
    first, again = landing.write(OTHERS.to_batches()), landing.write(OTHERS.to_batches())

    assert landing.land(first).version == 2
    ld.write_dataset(ROWS, place.uri, mode="append")
    assert travelled(landing).land(again).version == 2

    assert rows(place) == [1, 2, 3, 4, 1, 2, 3]
    assert len(files(place)) == 3


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_committed_files_are_never_deleted(place: TableRef, mode: str) -> None:
    if mode != "create":
        ld.write_dataset(ROWS, place.uri)
    landing = Landing.begin(place, OTHERS.schema, mode)
    counted = landing.write(OTHERS.to_batches())
    landing.land(counted)
    landing.write(ROWS.to_batches())
    ld.write_dataset(ROWS, place.uri, mode="append")

    travelled(landing).abandon()

    assert rows(place) == {"create": [4, 1, 2, 3], "append": [1, 2, 3, 4, 1, 2, 3], "overwrite": [4, 1, 2, 3]}[mode]
    assert len(files(place)) == {"create": 2, "append": 3, "overwrite": 3}[mode]


def test_an_abandoned_write_leaves_nothing(place: TableRef) -> None:
    landing = Landing.begin(place, ROWS.schema)
    landing.write(ROWS.to_batches())
    landing.abandon()
    assert files(place) == set()
    assert newest(place) is None
    landing.abandon()


def test_nothing_is_deleted_while_the_commit_outcome_is_unknown(place: TableRef) -> None:
    ld.write_dataset(ROWS, place.uri)
    landing = Landing.begin(place, ROWS.schema)
    landing.write(ROWS.to_batches())
    ld.write_dataset(ROWS, place.uri, mode="append")
    ld.write_dataset(ROWS, place.uri, mode="append")
    gone = next(path for path in Path(place.uri, "_versions").iterdir() if path.name.endswith("13.manifest"))
    gone.unlink()
    before = files(place)
    landing.abandon()
    assert files(place) == before

    begun = Landing.begin(place, ROWS.schema)
    begun.write(ROWS.to_batches())
    before = files(place)
    Path(place.uri, "_transactions", f"{begun.base}-{begun.uuid}.txn").write_bytes(b"")
    begun.abandon()
    assert files(place) == before


def test_mismatched_schemas_are_rejected_before_tasks_run(place: TableRef) -> None:
    ld.write_dataset(ROWS, place.uri)
    with pytest.raises(AlreadyExistsError, match="the table already exists"):
        Landing.begin(place, ROWS.schema, "create")
    with pytest.raises(InvalidInputError, match="'x'"):
        Landing.begin(place, pa.schema({"x": pa.int64()}))
    with pytest.raises(InvalidInputError, match="column 's'"):
        Landing.begin(place, pa.schema({"s": pa.int64()}))


def test_a_recreated_table_takes_no_rows(place: TableRef) -> None:
    ld.write_dataset(ROWS, place.uri)
    landing = Landing.begin(place, ROWS.schema)
    counted = landing.write(ROWS.to_batches())
    place.dataset().drop_columns(["s"])
    place.dataset().add_columns({"s": "id"})
    with pytest.raises(IncompatibleError):
        landing.land(counted)
    landing.abandon()
    assert len(files(place)) == 2


def test_concurrent_creations_combine_or_one_is_rejected(place: TableRef) -> None:
    first, second = Landing.begin(place, ROWS.schema), Landing.begin(place, ROWS.schema)
    third, fourth = Landing.begin(place, OTHERS.schema, "create"), Landing.begin(place, pa.schema({"x": pa.int64()}))
    written = [one.write(ROWS.to_batches()) for one in (first, second)]
    first.land(written[0])
    second.land(written[1])
    assert rows(place) == [1, 2, 3] * 2
    with pytest.raises(AlreadyExistsError):
        third.land(third.write(OTHERS.to_batches()))
    with pytest.raises(AlreadyExistsError):
        fourth.land(fourth.write([pa.record_batch({"x": [1]})]))
    assert len(files(place)) == 2
    assert len(files(place, "_transactions")) == 2


def test_a_stream_batch_written_by_two_drivers_commits_once(place: TableRef) -> None:
    batch = StreamBatch("q", 0)
    first, second = Landing.begin(place, ROWS.schema), Landing.begin(place, ROWS.schema)
    written = [one.write(ROWS.to_batches()) for one in (first, second)]
    first.land(written[0], guard=batch.guard, amend=batch.amend, config=batch.config)
    with pytest.raises(IncompatibleError, match="has been committed already"):
        second.land(written[1], guard=batch.guard, amend=batch.amend, config=batch.config)
    assert rows(place) == [1, 2, 3]


def test_a_guard_may_reject_and_a_transaction_may_be_named(place: TableRef) -> None:
    ld.write_dataset(ROWS, place.uri)
    uuid = uuid4()

    def refuse(snapshot: Snapshot) -> None:
        raise IncompatibleError("no", where=snapshot.version)

    settings = WriteSettings(commit_message="said", transaction_properties={"who": "me"})
    landing = Landing.begin(place, ROWS.schema, settings=settings).named(uuid)
    with pytest.raises(IncompatibleError, match="no"):
        landing.land(landing.write(ROWS.to_batches()), guard=refuse)
    assert len(files(place)) == 1

    landing.land(landing.write(ROWS.to_batches()))
    transaction = place.dataset().read_transaction(2)
    assert transaction.uuid == str(uuid)
    assert transaction.transaction_properties["who"] == "me"


def test_a_table_that_is_replaced_all_the_time_is_tried_again(place: TableRef, monkeypatch: pytest.MonkeyPatch) -> None:
    ld.write_dataset(ROWS, place.uri)
    landing = Landing.begin(place, ROWS.schema)
    counted = landing.write(ROWS.to_batches())
    seen = []

    def once(snapshot: Snapshot) -> None:
        seen.append(snapshot.version)
        if len(seen) == 1:
            raise RetryableError("again")

    landing.land(counted, guard=once)
    assert rows(place) == [1, 2, 3] * 2
    assert landing.landed() is not None
