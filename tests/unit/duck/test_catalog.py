from __future__ import annotations

import pytest

from lance_duck.duck.catalog import Vocabulary

WORDS = Vocabulary.of(["trips", "Größe", "odd name", 'with "quotes"', "a$b"])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM Trips",
        'FROM "trips" t',
        "FROM lance.trips",
        "SELECT 'trips'",
        "FROM größe",
        'FROM "ODD name"',
        'FROM "with ""quotes"""',
        "FROM a$b",
        "FROM 'x/Y.LANCE'",
        "FROM lance_scan(?)",
        "FROM LANCE_VECTOR_SEARCH(?, ?, ?)",
    ],
)
def test_table_names_paths_and_functions_are_recognised(sql: str) -> None:
    assert WORDS.may_be_in(sql)


@pytest.mark.parametrize(
    "sql", ["SELECT 1", "FROM trips_old", "FROM mytrips", "FROM odd, name", "FROM GRÖSSE", "FROM ab"]
)
def test_other_words_are_not_recognised(sql: str) -> None:
    assert not WORDS.may_be_in(sql)
