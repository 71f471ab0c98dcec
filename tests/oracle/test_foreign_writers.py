"""Tables with stable row ids that LanceDB changes, with a core before pylance 14 that does not read its B-trees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from oracle.unreached import over_listed
from oracle.writers import LANCEDB, OURS, PYLANCE, Writer

import lance_duck as ld
from lance_duck.index.catalog import catalog

CASE_KIND = "index answer"
ROWS = 40
QUESTION = "key < 14"
ANSWER = list(range(14))

Change = Callable[[str], None]


def table(start: int, stop: int, x: int = 0) -> pa.Table:
    return pa.table({"key": range(start, stop), "x": [x] * (stop - start)})


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of 4 fragments."""
    path = str(tmp_path / "t.lance")
    OURS.create(path, table(0, ROWS), stable=True, max_rows_per_file=10)
    return path


def update(path: str) -> None:
    LANCEDB.update(path, {"x": "1"}, "key < 5")


def upsert(path: str) -> None:
    LANCEDB.upsert(path, table(3, 20, 2))


def optimize(path: str) -> None:
    LANCEDB.optimize(path)


def update_and_optimize(path: str) -> None:
    update(path)
    optimize(path)


CHANGES: list[Change] = [update, upsert, optimize, update_and_optimize]


def covered(path: str) -> list[int]:
    """Return the fragments that the index covers."""
    (index,) = catalog(ld.dataset(path).handle.snapshot)
    found: list[int] = index.fragments.tolist()
    return found


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
@pytest.mark.parametrize("change", CHANGES)
def test_indexes_stay_correct_in_every_reader(path: str, kind: str, change: Change) -> None:
    OURS.create_index(path, "key", kind)
    change(path)
    for reader in (OURS, PYLANCE, LANCEDB):
        assert reader.keys(path, QUESTION) == [ANSWER], reader
        assert reader.keys(path, "key = 17") == [[17]], reader
    ld.dataset(path).validate()


@pytest.mark.parametrize("change", [update, optimize, update_and_optimize])
def test_a_btree_covers_rows_that_lancedb_moved(path: str, change: Change) -> None:
    OURS.create_index(path, "key", "BTREE")
    change(path)
    assert covered(path) == ld.dataset(path).handle.snapshot.fragments.ids()


@pytest.mark.parametrize("change", [update, optimize, update_and_optimize])
def test_a_pylance_btree_is_used_only_for_fragments_whose_rows_it_holds(path: str, change: Change) -> None:
    PYLANCE.create_index(path, "key", "BTREE")
    assert covered(path) == [0, 1, 2, 3]
    change(path)
    assert over_listed(ld.dataset(path))
    assert OURS.keys(path, QUESTION) == [ANSWER]
    assert len(PYLANCE.keys(path, QUESTION)[0]) < len(ANSWER)  # the hazard that docs/limits.md names
    assert set(covered(path)) <= {0, 1, 2, 3}
    with pytest.raises(ld.errors.CorruptError, match="lists fragments"):
        ld.dataset(path).validate()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("mender", [OURS, PYLANCE])
def test_a_wrong_fragment_list_is_not_inherited_by_optimize(path: str, change: Change, mender: Writer) -> None:
    PYLANCE.create_index(path, "key", "BTREE")
    change(path)
    OURS.append(path, table(100, 120))
    mender.optimize(path)
    assert OURS.keys(path, QUESTION) == [ANSWER]
    assert OURS.keys(path, "key >= 100") == [list(range(100, 120))]
    OURS.optimize_indices(path)
    for reader in (OURS, PYLANCE, LANCEDB):
        assert reader.keys(path, QUESTION) == [ANSWER], reader
    ld.dataset(path).validate()


def test_a_btree_that_pylance_compacted_still_finds_its_rows(path: str) -> None:
    PYLANCE.create_index(path, "key", "BTREE")
    PYLANCE.update(path, {"x": "1"}, "key < 5")
    PYLANCE.compact(path, 1000)
    assert not over_listed(ld.dataset(path))
    assert covered(path)
    assert OURS.keys(path, QUESTION) == [ANSWER]


@pytest.mark.parametrize("merge", [0, 1])
def test_both_libraries_optimize_each_others_index(path: str, merge: int) -> None:
    PYLANCE.create_index(path, "key", "BTREE")
    for number, writer in enumerate((OURS, PYLANCE, OURS)):
        OURS.append(path, table(100 + number, 101 + number))
        writer.optimize_indices(path, num_indices_to_merge=merge)
        for reader in (OURS, PYLANCE, LANCEDB):
            assert reader.keys(path, "key >= 39") == [[39, *range(100, 101 + number)]], reader
