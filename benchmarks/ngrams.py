"""How fast are n-gram indexes built, and how fast are conditions on parts of strings?

Each library builds the index on a copy of the table. Two more contestants are lance-duck without the index ("scan"),
and DuckDB with it ("SQL"). pylance scans for conditions that its index does not support.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import DATA, OURS, add_clock, chosen, clock_of, options, race, report
from benchmarks._index_work import cases_of, measured

LIBRARIES: dict[str, Any] = {OURS: ld, "pylance": lance}
VOCABULARY = 30_000
WORDS_OF_A_TEXT = 25
BUILT: dict[str, Any] = {"column": "s", "index_type": "NGRAM", "name": "built", "replace": True}
"""Arguments of a second index, for the builds."""


def main() -> None:
    """Race through building, then through questions; then print the sizes of the indexes."""
    parser = options((__doc__ or "").split("\n")[0], rows=200_000, rounds=9)
    add_clock(parser)
    arguments = parser.parse_args()
    paths = {who: table(who, arguments.rows) for who in LIBRARIES}
    cases = []
    if chosen(("build",), arguments.only):
        warm = {who: table(who, 1000) for who in LIBRARIES}
        measurements: dict[str, list[list[float]]] = {who: [] for who in LIBRARIES}
        for _ in range(min(3, arguments.rounds)):
            for who, path in paths.items():
                measurements[who].append(measured(who, "build", warm[who], path, BUILT))
        for who, path in paths.items():
            for each in (warm[who], path):
                LIBRARIES[who].dataset(each).drop_index(BUILT["name"])
        cases += cases_of("build", measurements)
    handles = {who: LIBRARIES[who].dataset(path) for who, path in paths.items()}
    asked = questions()
    with ld.connect({"t": paths[OURS]}) as connection:
        for name in chosen(asked, arguments.only):
            condition = asked[name]
            contestants: dict[str, Callable[[], object]] = {
                who: partial(handle.to_table, columns=["id"], filter=condition) for who, handle in handles.items()
            }
            contestants["scan"] = partial(
                handles[OURS].to_table, columns=["id"], filter=condition, use_scalar_index=False
            )
            contestants["SQL"] = partial(ask, connection, f"SELECT id FROM t WHERE {condition}")
            cases.append(race(name, contestants, arguments.rounds, clock_of(arguments)))
    report(f"Find parts of {arguments.rows:,} strings", cases, arguments)
    for who, path in paths.items():
        size = sum(file.stat().st_size for file in Path(path).glob("_indices/*/*"))
        print(f"size of the index of {who}: {size / 1e6:.1f} MB")


def questions() -> dict[str, str]:
    """Return conditions by name; words are numbered by frequency."""
    common, middle, rare = (words()[i] for i in (300, 3_000, 20_000))
    return {
        "contains, common": f"contains(s, '{common}')",
        "contains, middle": f"contains(s, '{middle}')",
        "contains, rare": f"contains(s, '{rare}')",
        "contains, nothing": "contains(s, 'qqxxqqxx')",
        "LIKE %middle%": f"s LIKE '%{middle}%'",
        "LIKE %common%middle%": f"s LIKE '%{common}%{middle}%'",
        "ILIKE %middle%": f"s ILIKE '%{middle}%'",
        "regular expression": f"regexp_like(s, '({middle}|{rare})')",
    }


def ask(connection: ld.Connection, sql: str) -> object:
    """Run a statement, with the name that DuckDB has for regular expressions, and fetch its rows."""
    return connection.execute(sql.replace("regexp_like", "regexp_matches")).fetchall()


def words() -> list[str]:
    """Return words of four to nine letters, the same at each call."""
    rng = np.random.default_rng(1)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    return ["".join(rng.choice(letters, rng.integers(4, 10))) for _ in range(VOCABULARY)]


def table(who: str, rows: int) -> str:
    """Write a table and its index, unless they are there."""
    path = DATA / f"ngrams-{rows}-{who}.lance"
    if not path.exists():
        rng = np.random.default_rng(2)
        vocabulary = np.array(words())
        weights = 1 / np.arange(1, VOCABULARY + 1)
        drawn = rng.choice(VOCABULARY, (rows, WORDS_OF_A_TEXT), p=weights / weights.sum())
        texts = pa.array([" ".join(text) for text in vocabulary[drawn].tolist()])
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        lance.write_dataset(pa.table({"id": np.arange(rows), "s": texts}), unfinished)
        LIBRARIES[who].dataset(unfinished).create_scalar_index("s", "NGRAM")
        unfinished.rename(path)
    return str(path)


if __name__ == "__main__":
    main()
