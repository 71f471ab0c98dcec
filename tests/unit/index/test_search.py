from __future__ import annotations

import shutil
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from unit.index.conftest import Table
from unit.index.plain import FILE, PlainKind, built, changed, indexed, offsets

import lance_duck as ld
from lance_duck.commit import CreateIndex, commit
from lance_duck.errors import CorruptError, IndexWarning, LanceDuckError, NotFoundError
from lance_duck.index import registry
from lance_duck.index.btree.kind import BTREE
from lance_duck.index.build import merge_segments
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.kind import Answer
from lance_duck.index.query import Among, Null, Query
from lance_duck.index.search import estimate, open_index, search
from lance_duck.kernels.jit import KernelError
from lance_duck.maintenance.validation.validate import find_problems
from lance_duck.rows.row_set import RowSet
from lance_duck.snapshot import Snapshot, open_snapshot


def among(*values: int) -> Among:
    return Among(pa.array(values, pa.int64()))


def segments(snapshot: Snapshot, path: str = "x") -> tuple[Segment, ...]:
    return catalog(snapshot).over(path)[0].segments


def asked(snapshot: Snapshot, query: Query) -> dict[int, list[int]]:
    answers = [search(snapshot, segment, query) for segment in segments(snapshot)]
    return offsets(RowSet.union(answer.maybe for answer in answers if answer is not None))


def test_a_segment_returns_row_addresses(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    (segment,) = segments(snapshot)
    found = search(snapshot, segment, among(17))
    assert found is not None
    assert found.is_exact
    assert offsets(found.sure) == {1: [7]}
    unsure = search(snapshot, segment, among(17, 3))
    assert unsure is not None
    assert offsets(unsure.maybe) == {0: [3], 1: [7]}
    assert not unsure.sure
    assert estimate(snapshot, segment, among(17)) == 40


def test_rows_outside_the_covered_fragments_are_dropped(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    dataset = ld.dataset(snapshot.uri)
    dataset.delete("y < 10")
    dataset.update({"x": "5"}, where="y = 15")
    assert asked(open_snapshot(snapshot.uri), Null()) == {i: [4, 9] for i in (1, 2, 3)}


def test_deleted_rows_may_appear_in_a_search_by_address(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    ld.dataset(snapshot.uri).delete("y = 17")
    assert asked(open_snapshot(snapshot.uri), among(17)) == {1: [7]}


def test_rows_found_by_id_are_returned_at_their_current_address(
    table: Table, kind: PlainKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind.rows_by = "id"
    kind.type_url = "/test.room.BitmapIndexDetails"  # a commit treats it as an index by row id
    monkeypatch.setattr(registry, "KINDS", (registry.KindEntry.of(kind),))
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, built(snapshot, kind, fragments=[0, 1]))
    dataset = ld.dataset(snapshot.uri)
    dataset.update({"y": "100"}, where="x = 3")  # it moves to a new fragment, which the segment then covers
    dataset.update({"x": "70"}, where="x = 7")  # it moves to a new fragment, which the segment does not cover
    dataset.delete("x = 13")
    now = open_snapshot(snapshot.uri)
    (segment,) = segments(now)
    assert segment.fragments.tolist() == [0, 1, 4]
    assert asked(now, among(3)) == {4: [0]}
    assert asked(now, among(7)) == {}
    assert asked(now, among(13)) == {}
    assert asked(now, among(12)) == {1: [2]}
    assert asked(snapshot, among(3, 7, 13)) == {0: [3, 7], 1: [3]}


def test_unknown_row_ids_are_dropped(table: Table, kind: PlainKind, monkeypatch: object) -> None:
    kind.rows_by = "id"
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, built(snapshot, kind))
    (segment,) = segments(snapshot)
    everything = RowSet.of_ranges([(0, 0, 1 << 32), (5, 0, 1 << 32)])
    open_index(snapshot, segment).search = lambda query: Answer.exactly(everything)  # type: ignore[method-assign]
    assert asked(snapshot, Null()) == {i: list(range(10)) for i in range(4)}


def test_a_row_beyond_the_end_of_its_fragment_breaks_the_segment(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    (segment,) = segments(snapshot)
    everything = RowSet.of_ranges([(0, 0, 1 << 32)])
    open_index(snapshot, segment).search = lambda query: Answer.exactly(everything)  # type: ignore[method-assign]
    with pytest.warns(
        IndexWarning, match=r"a row offset is out of range in fragment 0: expected below 10, found 4294967295"
    ):
        assert search(snapshot, segment, Null()) is None


def test_a_segment_is_opened_once_for_successive_versions(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    barrier = threading.Barrier(6)

    def ask(_: int) -> dict[int, list[int]]:
        barrier.wait()
        return asked(snapshot, among(11))

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, range(6))) == [{1: [1]}] * 6
    later = indexed(snapshot, changed(built(snapshot, kind, "y"), name="other"))
    assert asked(later, among(11)) == {1: [1]}
    assert kind.opened == 1


def test_a_broken_segment_warns_once_and_is_not_retried(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind, fragments=[0, 1]), built(snapshot, kind, fragments=[2, 3]))
    first, second = segments(snapshot)
    (Path(snapshot.uri) / first.metadata.directory / FILE).unlink()
    with pytest.warns(IndexWarning) as record:
        assert asked(snapshot, among(11, 21)) == {2: [1]}
    (warning,) = record
    for part in ("'x_idx'", str(first.uuid), FILE, "its rows are scanned"):
        assert part in str(warning.message)
    assert warning.filename == __file__
    for _ in range(3):  # without a second warning, also for another handle
        assert asked(snapshot, among(11, 21)) == {2: [1]}
        assert asked(open_snapshot(snapshot.uri), among(11, 21)) == {2: [1]}
    with pytest.raises(NotFoundError):
        open_index(snapshot, first)
    assert second.uuid != first.uuid


def test_a_broken_segment_stays_unusable_if_its_warning_is_an_error(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    shutil.rmtree(Path(snapshot.uri) / segments(snapshot)[0].metadata.directory)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(IndexWarning):
            asked(snapshot, Null())
        assert asked(snapshot, Null()) == {}


@pytest.mark.parametrize("cut", [0, 10, 100, -1])
def test_a_file_that_is_cut_breaks_the_segment(cut: int, table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    (segment,) = segments(snapshot)
    path = Path(snapshot.uri) / segment.metadata.directory / FILE
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.warns(IndexWarning, match=str(segment.uuid)):
        assert estimate(snapshot, segment, Null()) is None
    with pytest.raises(LanceDuckError):
        open_index(snapshot, segment)


def test_details_of_another_type_make_a_segment_unusable(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    metadata = built(snapshot, kind)
    metadata.proto.index_details.value = b"odd"
    snapshot = indexed(snapshot, metadata)
    with pytest.warns(IndexWarning, match="details"):
        assert asked(snapshot, Null()) == {}
    with pytest.raises(CorruptError):
        open_index(snapshot, segments(snapshot)[0])


@pytest.mark.parametrize("error", [ValueError("odd"), pa.ArrowInvalid("odd"), MemoryError("odd"), IndexError("odd")])
def test_rows_of_a_failing_segment_are_scanned(error: Exception, table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    (segment,) = segments(snapshot)

    def fail(query: Query) -> Answer:
        raise error

    open_index(snapshot, segment).search = fail  # type: ignore[method-assign]
    with pytest.warns(IndexWarning, match="cannot be read: found .*odd"):
        assert search(snapshot, segment, Null()) is None


def test_an_index_is_asked_again_after_a_lack_of_memory(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    (segment,) = segments(snapshot)
    index = open_index(snapshot, segment)
    answer, index.search = index.search, Mock(side_effect=MemoryError("odd"))  # type: ignore[method-assign]
    with pytest.warns(IndexWarning, match="cannot be read"):
        assert search(snapshot, segment, Null()) is None
    index.search = answer  # type: ignore[method-assign]
    assert search(snapshot, segment, Null()) is not None


@pytest.mark.parametrize("error", [KernelError("odd"), ImportError("odd"), NameError("odd")])
def test_unexpected_errors_are_raised_and_the_segment_is_retried(
    error: Exception, table: Table, kind: PlainKind
) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    (segment,) = segments(snapshot)
    index = open_index(snapshot, segment)
    sound = index.search

    def fail(query: Query) -> Answer:
        raise error

    index.search = fail  # type: ignore[method-assign]
    with pytest.raises(type(error), match="odd"):
        search(snapshot, segment, Null())
    index.search = sound  # type: ignore[method-assign]
    assert search(snapshot, segment, Null()) is not None


def test_btree_version_0_identifies_rows_by_id(table: Table) -> None:
    snapshot = table(10, stable=True)  # in the first fragment ids and addresses are the same numbers
    snapshot = indexed(snapshot, built(snapshot, BTREE))
    dataset = ld.dataset(snapshot.uri)
    dataset.update({"y": "100"}, where="x = 3")
    dataset.update({"x": "70"}, where="x = 7")
    now = open_snapshot(snapshot.uri)
    (segment,) = segments(now)
    assert segment.by_row_id
    assert asked(now, among(3)) == {1: [0]}
    assert asked(now, among(7)) == {}
    assert asked(now, Null()) == {0: [4, 9]}
    assert find_problems(now) == []
    assert segment.metadata.version == 0
    merged = merge_segments(now, [segment])
    assert merged.version == 0
    replaced = commit(now, CreateIndex([merged], [segment.metadata]))
    assert segments(replaced)[0].by_row_id
    assert asked(replaced, among(3)) == {1: [0]}
    assert find_problems(replaced) == []


def test_a_segment_stays_open_across_checkouts(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    assert asked(snapshot, among(11)) == {1: [1]}
    ld.dataset(snapshot.uri).delete("y = 3")
    assert asked(snapshot.checkout(), among(11)) == {1: [1]}
    assert asked(snapshot.checkout().checkout(2), among(11)) == {1: [1]}
    assert kind.opened == 1
