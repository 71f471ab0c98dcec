from __future__ import annotations

from random import Random

import duckdb
import pyarrow as pa

from lance_duck.duck.statement.identifiers import shown_names, stored_name


def test_names_that_repeat_without_regard_to_case_equal_those_of_duckdb() -> None:
    random = Random(5)
    parts = ["a", "A", "a_1", "A_1", "a_1_1", "b", "B", "é", "É", "a_2", "ab", "Ab"]
    with duckdb.connect() as native:
        for _ in range(200):
            names = random.sample(parts, random.randrange(1, len(parts)))
            table = pa.table([[1]] * len(names), names=names)
            assert shown_names(names) == native.from_arrow(table).columns


def test_stored_names_are_found_by_duckdbs_names() -> None:
    names = ["vec", "VEC", "x"]
    assert [stored_name(name, names) for name in ("vec", "VEC", "VEC_1", "vec_1", "X", "y")] == [
        *("vec", "VEC", "VEC", "VEC", "x", "y")
    ]
    assert stored_name("VEC", ["vec"]) == "VEC"
