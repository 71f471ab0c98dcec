"""How fast are one text query and one row by its key, prepared or not, beside tantivy, pylance and DuckDB?

tantivy is compared if it is installed. Each round asks all queries of a case, one by one. Each round has other keys and
other new terms. "native" is a table of DuckDB in memory, with an index.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import count, cycle
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, race, report, ways
from benchmarks._texts import vocabulary
from benchmarks.full_text import batches
from lance_duck.query import FullTextOperator, MatchQuery

K = 10
QUERIES = 40
COLUMNS = ["_rowid", "_score"]
KEY = "a row by its key"
SQL = "SELECT s FROM texts WHERE id = ?"

Search = Callable[[Any], Any]


def main() -> None:
    """Ask for one thing at a time, in one thread."""
    parser = options((__doc__ or "").split("\n")[0], rows=200_000, rounds=15)
    add_clock(parser)
    parser.set_defaults(processor=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = pa.Table.from_batches(list(batches(arguments.rows)))
        path = table(texts, folder)
        index = tantivy_index(texts) if find_spec("tantivy") else None
        asked = questions()
        names = chosen(asked, arguments.only)
        cases = [case for name in names for case in text_cases(name, asked[name], path, index, arguments)]
        if arguments.only in KEY:
            cases += key_cases(path, arguments)
    report(f"One query over {arguments.rows:,} texts, {QUERIES} in a row", cases, arguments)


def questions() -> Mapping[str, Sequence[tuple[Any, str]]]:
    """Return the queries by case, for lance-duck and for tantivy."""
    known, numbers = vocabulary(), range(20, 20 + QUERIES)
    threes = [(known[i], known[i + 40], known[i + 80]) for i in numbers]
    every = partial(MatchQuery, column="s", operator=FullTextOperator.AND)
    return {
        "new terms": [(word, word) for word in known[500:]],
        "term": [(known[i + 40], known[i + 40]) for i in numbers],
        "three terms OR": [(" ".join(words), " ".join(words)) for words in threes],
        "three terms AND": [(every(" ".join(words)), " ".join(f"+{word}" for word in words)) for words in threes],
        "phrase of two": [(f'"{known[i]} {known[i + 2]}"', f'"{known[i]} {known[i + 2]}"') for i in numbers],
    }


def text_cases(name: str, asked: Sequence[tuple[Any, str]], path: str, index: Any, arguments: Any) -> list[Case]:
    """Race through text queries."""
    dataset = ld.dataset(path)
    words = dataset.prepare_search("s", k=K, columns=COLUMNS)
    searches: dict[str, Search] = {
        OURS: lambda q: dataset.to_table(columns=COLUMNS, full_text_query=q, limit=K),
        "prepared": words,
        "ids": words.ids,
    }

    def asking(search: Search, texts: Sequence[Any], first: int = 0) -> Callable[[], object]:
        """Return a function that asks all queries, or the next ones if they are more."""
        turns = [texts[i : i + QUERIES] for i in range(0, len(texts), QUERIES)]
        turn = cycle(turns[first * len(turns) // 3 :] + turns[: first * len(turns) // 3])
        return lambda: run(search, next(turn))

    contestants = {  # the searches share their caches, so they begin with different queries
        who: asking(search, [q for q, _ in asked], number) for number, (who, search) in enumerate(searches.items())
    }
    if index is not None:
        searcher = index.searcher()
        find = lambda q: searcher.search(index.parse_query(q, ["s"]), K).hits  # noqa: E731
        contestants["tantivy"] = asking(find, [q for _, q in asked])
    return ways(race(name, contestants, arguments.rounds, clock_of(arguments)), searches)


def key_cases(path: str, arguments: Any) -> list[Case]:
    """Race through rows by their keys, in Python and in SQL."""
    ours, theirs = ld.dataset(path), lance.dataset(path)
    one = ours.prepare("id = ?", columns=["s"])
    native = duckdb.connect()
    native.register("rows", ours.to_table(["id", "s"]))
    native.execute("CREATE TABLE texts AS FROM rows; CREATE INDEX by_id ON texts (id)")
    (parsed,) = native.extract_statements(SQL)
    with ld.connect(Path(path).parent) as con:
        ask = con.prepare(SQL)
        searches: dict[str, Search] = {
            OURS: lambda key: ours.to_table(columns=["s"], filter=f"id = {key}"),
            "prepared": one,
            "rows": one.rows,
            "SQL": lambda key: con.execute(SQL, [key]).fetchall(),
            "SQL, new text": lambda key: con.execute(f"SELECT s FROM texts WHERE id = {key}").fetchall(),
            "prepared SQL": lambda key: ask([key]).fetchall(),
        }
        others: dict[str, Search] = {
            "SQL, native": lambda key: native.execute(SQL, [key]).fetchall(),
            "prepared SQL, native": lambda key: native.execute(parsed, [key]).fetchall(),
            "pylance": lambda key: theirs.to_table(columns=["s"], filter=f"id = {key}"),
        }
        everyone = {**searches, **others}
        contestants = {who: partial(run_new, search, arguments.rows, count()) for who, search in everyone.items()}
        return ways(race(KEY, contestants, arguments.rounds, clock_of(arguments)), searches)


def run(search: Search, queries: Sequence[Any]) -> None:
    """Ask all queries."""
    for q in queries:
        search(q)


def run_new(search: Search, rows: int, rounds: Iterator[int]) -> None:
    """Ask for rows by new keys."""
    run(search, np.random.default_rng(next(rounds)).integers(0, rows, QUERIES).tolist())


def table(texts: pa.Table, folder: str) -> str:
    """Return the path of a new table with both indexes."""
    dataset = ld.write_dataset(texts, Path(folder) / "texts.lance")
    dataset.create_scalar_index("s", "INVERTED", stem=False, remove_stop_words=False, with_position=True)
    dataset.create_scalar_index("id", "BTREE")
    return dataset.uri


def tantivy_index(texts: pa.Table) -> Any:
    """Return tantivy's index of the same texts, in memory and in one segment."""
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("s", stored=False, index_option="position")
    index = tantivy.Index(schema.build())
    writer = index.writer(200_000_000, 1)
    for text in texts["s"].to_pylist():
        writer.add_document(tantivy.Document(s=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


if __name__ == "__main__":
    main()
