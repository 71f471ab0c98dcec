"""Stream offsets, without a session."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError
from lance_duck.spark.io.stream_offsets import Offset, Walk
from lance_duck.spark.io.stream_options import Limits, StreamOptions

HASTY = {"fsync": "false"}


def append(table: ld.LanceDataset | str, *values: int, each: int = 1 << 20) -> ld.LanceDataset:
    rows = pa.table({"a": list(values)})
    return ld.write_dataset(rows, table, mode="append", max_rows_per_file=each, storage_options=HASTY)


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    """Version 1 brings fragment 0, version 2 fragments 1 and 2, version 3 fragment 3."""
    made = append(str(tmp_path / "t"), 1, 2, 3)
    return append(append(made, 4, 5, each=1), 6)


def walk(table: ld.LanceDataset, **options: str) -> Walk:
    return Walk(table, StreamOptions.of(options))


def end(table: ld.LanceDataset) -> Offset:
    return Offset(table.latest_version + 1)


def fragments(way: Walk, start: Offset, until: Offset) -> dict[int, list[int]]:
    return {step.version: [piece.fragment for piece in step.pieces] for step in way.steps(start, until)}


def test_a_stream_begins_with_the_existing_rows(table: ld.LanceDataset) -> None:
    way = walk(table)
    assert way.begin() == Offset(3, 0, snapshot=True)
    assert fragments(way, way.begin(), end(table)) == {3: [0, 1, 2, 3]}


def test_a_stream_begins_at_the_requested_version_or_timestamp(table: ld.LanceDataset) -> None:
    moment = table.versions()[1]["timestamp"].isoformat()
    assert walk(table, startingversion="2").begin() == Offset(2)
    assert walk(table, starting_version="latest").begin() == Offset(4)
    assert walk(table, startingTimestamp=moment).begin() == Offset(2)
    assert walk(table, startingTimestamp="2999-01-01").begin() == Offset(4)
    assert fragments(walk(table), Offset(2), end(table)) == {2: [1, 2], 3: [3]}


def test_limits_end_a_batch_between_fragments(table: ld.LanceDataset) -> None:
    def stops(limits: Limits) -> list[tuple[int, int]]:
        way, here, found = walk(table), Offset(3, 0, snapshot=True), []
        while here < end(table):
            here = way.advance(here, end(table), limits)
            found.append((here.version, here.index))
        return found

    size = walk(table)._read(Offset(3))[0].size
    assert stops(Limits(files=2)) == [(3, 2), (4, 0)]
    assert stops(Limits(rows=4)) == [(3, 2), (4, 0)]
    assert stops(Limits(size=1)) == stops(Limits(files=1)) == [(3, 1), (3, 2), (3, 3), (4, 0)]
    assert stops(Limits(size=100 * size)) == stops(Limits()) == [(4, 0)]


def test_versions_without_new_rows_are_skipped(table: ld.LanceDataset) -> None:
    table.optimize.compact_files()
    table.create_scalar_index("a", "BTREE")
    append(table, 7)
    way = walk(table)
    found = fragments(way, Offset(3), end(table))
    assert {version: ids for version, ids in found.items() if ids} == {3: [3], table.latest_version: [5]}
    assert way.advance(Offset(4), end(table), Limits(files=1)) == end(table)


def test_a_batch_ends_before_a_change_and_the_next_one_fails(table: ld.LanceDataset) -> None:
    table.delete("a = 5")
    append(table, 7)
    way = walk(table)
    assert way.advance(Offset(2), end(table), Limits()) == Offset(4)
    for attempt in (
        lambda: way.advance(Offset(4), end(table), Limits()),
        lambda: list(way.steps(Offset(4), Offset(5))),
    ):
        with pytest.raises(InvalidInputError, match=r"version 4 changed rows \(Delete\).*skipChangeCommits"):
            attempt()


def test_changes_are_skipped_on_request(table: ld.LanceDataset) -> None:
    table.delete("a = 5")
    append(table, 7)
    for option in ("ignoreDeletes", "skip_change_commits"):
        assert fragments(walk(table, **{option: "true"}), Offset(3), end(table)) == {3: [3], 4: [], 5: [4]}
    table.update({"a": "0"}, where="a = 6")
    assert fragments(walk(table, skipchangecommits="true"), Offset(5), end(table)) == {5: [4], 6: []}
    with pytest.raises(InvalidInputError, match=r"version 6 changed rows \(Update\)"):
        fragments(walk(table, ignoreDeletes="true"), Offset(5), end(table))


def test_missing_versions_fail_or_are_skipped(table: ld.LanceDataset) -> None:
    table.cleanup_old_versions(retain_versions=1)
    with pytest.raises(NotFoundError, match=r"next version of the stream, 2, was cleaned up.*failOnDataLoss=false"):
        fragments(walk(table), Offset(2), end(table))
    assert fragments(walk(table, failOnDataLoss="false"), Offset(2), end(table)) == {2: [], 3: [3]}


def test_a_recreated_table_is_detected(table: ld.LanceDataset) -> None:
    assert list(walk(table).steps(Offset(4), Offset(4))) == []
    with pytest.raises(
        NotFoundError, match="the stream has read version 6, which does not exist: found newest version 3"
    ):
        walk(table).advance(Offset(7), Offset(7), Limits())


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"version": "1", "index": 0},
        {"version": -1, "index": 0},
        {"version": 1, "index": True},
        {"version": 1, "index": 0, "snapshot": 1},
    ],
)
def test_invalid_offsets_are_rejected(offset: dict[str, object]) -> None:
    with pytest.raises(CorruptError, match="invalid stream offset"):
        Offset.of(offset)


def test_offsets_survive_a_checkpoint() -> None:
    for offset in (Offset(3, 2, snapshot=True), Offset(7)):
        assert Offset.of(offset.json()) == offset


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("startingVersion", "soon", "option startingVersion: expected a version, or \"latest\", found 'soon'"),
        ("startingTimestamp", "soon", "option startingTimestamp: expected for example"),
        ("maxFilesPerTrigger", "0", "option maxFilesPerTrigger: expected a number above zero, found '0'"),
        ("max_bytes_per_trigger", "1x", "option max_bytes_per_trigger: expected bytes above zero"),
        ("ignoreDeletes", "yes", "option ignoreDeletes: expected true or false, found 'yes'"),
    ],
)
def test_invalid_options_are_named(option: str, value: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        StreamOptions.of({option: value})


def test_sizes_accept_units_and_two_starting_options_are_rejected() -> None:
    sizes = {text: StreamOptions.of({"maxbytespertrigger": text}).limits.size for text in ("7", "2k", "3MB", "1 GiB")}
    assert sizes == {"7": 7, "2k": 2048, "3MB": 3 << 20, "1 GiB": 1 << 30}
    with pytest.raises(InvalidInputError, match="startingVersion and startingTimestamp exclude each other"):
        StreamOptions.of({"startingversion": "1", "startingtimestamp": "2026-01-01"})
