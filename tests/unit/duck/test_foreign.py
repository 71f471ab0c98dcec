"""Which statements change where DuckDB looks for names."""

from __future__ import annotations

import pytest

from lance_duck.duck.foreign import changes_search


@pytest.mark.parametrize(
    "sql",
    [
        "USE lance",
        "-- where\n use memory.main",
        "SET search_path = 'lance.main,memory.main'",
        "set session schema = 'lance'",
        "RESET search_path",
        "PRAGMA search_path='lance'",
        "SET python_scan_all_frames = true",
    ],
)
def test_settings_of_the_search_change_it(sql: str) -> None:
    assert changes_search(sql)


@pytest.mark.parametrize("sql", ["SET threads = 1", "SELECT search_path FROM used", "SELECT 1", "", "users"])
def test_other_statements_do_not(sql: str) -> None:
    assert not changes_search(sql)
