"""Tables of old writers: incomplete entries are used, and optimize updates them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.index.inverted.old_files import old_files
from unit.index.plain import built, changed, indexed

import lance_duck as ld
from lance_duck.errors import IndexWarning
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.query import MatchQuery, PhraseQuery
from lance_duck.snapshot import Snapshot

TEXTS = {0: ["duck"], 1: ["duck", "lake"], 3: ["lake", "duck"], 8: ["goose"]}
FIELDS = {"index_version": None, "files": None}


@pytest.fixture
def old_table(tmp_path: Path) -> Callable[..., ld.LanceDataset]:
    """Return a function that writes a table whose first rows an old writer indexed."""

    def write(**fields: object) -> ld.LanceDataset:
        rows = [" ".join(TEXTS.get(i, ())) or None for i in range(10)]
        ds = ld.write_dataset({"id": range(10), "s": rows}, tmp_path / "t.lance", max_rows_per_file=10)
        ds.insert({"id": [10, 11], "s": ["the duck", "pond"]})
        snapshot: Snapshot = ds.handle.snapshot
        entry = changed(built(snapshot, INVERTED, "s", [0]), **FIELDS, **fields)
        home = tmp_path / "t.lance"
        shutil.rmtree(home / entry.directory)
        (home / old_files(home, TEXTS).directory).rename(home / entry.directory)
        indexed(snapshot, entry)
        return ld.dataset(tmp_path / "t.lance")

    return write


def test_an_entry_without_details_is_recognised_by_its_files(old_table: Callable[..., ld.LanceDataset]) -> None:
    ds = old_table(index_details=None)
    scanner = ds.scanner(["id"], full_text_query=PhraseQuery("lake duck", "s"))
    assert scanner.to_table()["id"].to_pylist() == [3]
    assert "1 through the index, 1 searched flat" in scanner.explain_plan()


def test_files_of_an_unfinished_build_are_ignored_with_a_warning(
    old_table: Callable[..., ld.LanceDataset], tmp_path: Path
) -> None:
    ds = old_table()
    (folder,) = (tmp_path / "t.lance" / "_indices").glob("*/docs.lance")
    folder.rename(folder.with_name("part_4294967296_docs.lance"))
    with pytest.warns(IndexWarning, match=r"metadata\.lance"):
        assert ds.to_table(["id"], full_text_query=MatchQuery("duck", "s"))["id"].to_pylist() == [0, 10, 1, 3]


def test_optimize_rebuilds_indexes_of_old_writers(old_table: Callable[..., ld.LanceDataset]) -> None:
    ds = old_table()
    ds.optimize.optimize_indices()
    (index,) = ds.describe_indices()
    (segment,) = index.segments
    assert (segment.index_version, segment.fragment_ids) == (1, {0, 1})
    figures = ds.index_statistics("s_idx")["indices"][0]
    assert (figures["num_docs"], figures["params"]["with_position"], figures["params"]["stem"]) == (6, True, False)
    for query, rows in ((MatchQuery("duck", "s"), [0, 1, 3, 10]), (PhraseQuery("the duck", "s"), [10])):
        assert ds.to_table(["id"], full_text_query=query)["id"].to_pylist() == rows
