"""Which versions and files a cleanup removes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from lance_duck.errors import InvalidInputError, ReferencedError
from lance_duck.maintenance.cleanup_plan import CleanupPolicy, old_versions, removable
from lance_duck.store import Entry
from lance_duck.store.base import temporary_name

NOW = datetime(2026, 1, 31, tzinfo=UTC)
DAY = timedelta(days=1)
AGES = {1: NOW - 40 * DAY, 2: NOW - 20 * DAY, 3: NOW - 10 * DAY, 4: NOW - DAY, 5: NOW}


def old(kept: dict[int, list[str]] | None = None, current: int = 5, **policy: Any) -> list[int]:
    return old_versions(AGES, kept or {}, current, CleanupPolicy(**policy), NOW)


def test_versions_older_than_two_weeks_are_removed_by_default() -> None:
    assert old() == [1, 2]


def test_the_newest_version_is_always_kept() -> None:
    assert old(older_than=timedelta(0)) == [1, 2, 3, 4]
    assert old(versions=[5]) == []


def test_the_version_of_the_handle_is_kept() -> None:
    assert old(current=2, older_than=timedelta(0)) == [1, 3, 4]


def test_the_requested_number_of_versions_is_kept() -> None:
    assert old(retain_versions=2) == [1, 2, 3]
    assert old(retain_versions=9) == []
    assert old(retain_versions=2, older_than=15 * DAY) == [1, 2]


def test_only_the_named_versions_are_removed() -> None:
    assert old(versions=[1, 3, 99]) == [1, 3]


def test_removing_a_tagged_version_raises_an_error_with_the_tag() -> None:
    with pytest.raises(ReferencedError, match=r"Cleanup error: 1 tagged.*'first': 1"):
        old({1: ["first"]})
    assert old({1: ["first"]}, error_if_tagged_old_versions=False) == [2]


def test_a_version_used_by_a_branch_is_kept_silently() -> None:
    assert old({1: []}) == [2]


@pytest.mark.parametrize("bad", [{"retain_versions": 0}, {"older_than": -DAY}])
def test_invalid_policies_are_rejected(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        CleanupPolicy(**bad)


def entry(path: str, age: timedelta = DAY) -> Entry:
    return Entry(path, 10, NOW - age)


def removed(
    *entries: Entry, kept: set[str] = frozenset(), dropped: set[str] = frozenset(), **options: Any
) -> list[str]:  # type: ignore[assignment]
    found = removable(entries, kept, dropped, options.get("delete_unverified", False), NOW)
    return [f.path for f in found]


def test_files_are_removed_with_the_last_version_that_references_them() -> None:
    entries = [entry("data/a.lance"), entry("data/b.lance"), entry("data/a/1.blob")]
    both = {"data/a.lance", "data/a/"}
    assert removed(*entries, kept={"data/b.lance"}, dropped=both | {"data/b.lance"}) == [
        "data/a.lance",
        "data/a/1.blob",
    ]


def test_unreferenced_files_are_removed_after_a_week() -> None:
    entries = [entry("data/new.lance", 6 * DAY), entry("data/old.lance", 8 * DAY)]
    assert removed(*entries) == ["data/old.lance"]
    assert removed(*entries, delete_unverified=True) == ["data/new.lance", "data/old.lance"]


def test_foreign_files_are_kept() -> None:
    names = ("data/readme.txt", "data/x/y/z.lance", "_duck/a.lance", "_deletions/1.txt", "_indices/notes/a.lance")
    assert removed(*(entry(name, 100 * DAY) for name in names), delete_unverified=True) == []


def test_partial_files_of_killed_writers_are_removed_after_a_week() -> None:
    for name in (temporary_name("data/a.lance"), f"_versions/7.manifest-{UUID(int=1)}"):
        assert removed(entry(name, 6 * DAY), entry(name, 8 * DAY)) == [name]


def test_an_index_directory_is_kept_or_removed_as_a_whole() -> None:
    kept, dropped = (f"_indices/{UUID(int=i)}/" for i in (1, 2))
    entries = [entry(f"{d}{n}") for d in (kept, dropped) for n in ("page.lance", "sub/other.bin")]
    assert removed(*entries, kept={kept}, dropped={dropped}) == [f"{dropped}page.lance", f"{dropped}sub/other.bin"]
