"""How fast are the queries of the search-benchmark-game?

Without a command, a corpus and queries of the game's forms are made, and lance-duck runs beside its peers. `build` and
`serve` implement the game's protocol, so that lance-duck can take part in it:

    python -m benchmarks.search_game build FOLDER < corpus.json   # lines of {"id", "text"}
    python -m benchmarks.search_game serve FOLDER                 # lines of COMMAND and query, one number each
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import lance
import lance.query as theirs
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import DATA, OURS, add_clock, chosen, clock_of, options, race, report
from benchmarks._texts import texts, vocabulary
from lance_duck import query as ours

COLUMN = "text"
QUERIES = 50
ROWS_OF_BATCH = 50_000
COMMANDS = ("TOP_10", "TOP_10_COUNT", "COUNT")
FORMS = ("term", "intersection", "union", "phrase")

Run = Callable[[str, str], int]
"""Runs a command with a query, and returns the number that the game expects."""


def main() -> None:
    """Race, or take part in the game."""
    if sys.argv[1:2] == ["build"]:
        build(sys.argv[2], documents(sys.stdin))
        return
    if sys.argv[1:2] == ["serve"]:
        serve(runner(sys.argv[2], ours, ld.dataset), sys.stdin)
        return
    parser = options((__doc__ or "").split("\n")[0], rows=200_000, rounds=9)
    parser.add_argument("--queries", type=Path, metavar="FILE", help="queries.txt of the game (default: made here)")
    add_clock(parser)
    parser.set_defaults(processor=True)
    arguments = parser.parse_args()
    folder = DATA / f"search_game_{arguments.rows}.lance"
    if not folder.exists():
        build(str(folder), corpus(arguments.rows))
    runs = {OURS: runner(str(folder), ours, ld.dataset), "pylance": runner(str(folder), theirs, lance.dataset)}
    if find_spec("tantivy"):
        runs["tantivy"] = tantivy_runner(str(folder))
    asked = read_queries(arguments.queries) if arguments.queries else made_queries()
    names = {f"{form}, {command}": (command, asked[form]) for form in FORMS for command in COMMANDS if asked[form]}
    cases = []
    for name in chosen(names, arguments.only):
        command, queries = names[name]
        compare(runs, command, queries)
        contestants = {who: partial(run_all, run, command, queries) for who, run in runs.items()}
        cases.append(race(name, contestants, arguments.rounds, clock_of(arguments)))
    report(f"{QUERIES} queries of the search-benchmark-game, {arguments.rows:,} texts", cases, arguments)


def build(folder: str, batches: Iterable[pa.RecordBatch]) -> None:
    """Write the documents and their index, with positions and without stemming."""
    first = next(iterator := iter(batches))
    rows = pa.RecordBatchReader.from_batches(first.schema, (batch for part in ([first], iterator) for batch in part))
    dataset = ld.write_dataset(rows, folder, mode="overwrite")
    dataset.create_scalar_index(COLUMN, "INVERTED", with_position=True, stem=False, remove_stop_words=False)


def documents(lines: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Yield the documents of the game's corpus: a JSON object per line, with `id` and `text`."""
    objects = map(json.loads, lines)
    while part := list(islice(objects, ROWS_OF_BATCH)):
        yield pa.RecordBatch.from_pydict({name: [each[name] for each in part] for name in ("id", COLUMN)})


def corpus(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield random documents whose word frequencies follow a natural language."""
    for start in range(0, rows, ROWS_OF_BATCH):
        count = min(ROWS_OF_BATCH, rows - start)
        ids = pa.array(range(start, start + count)).cast(pa.string())
        yield pa.RecordBatch.from_pydict({"id": ids, COLUMN: texts(count, start // ROWS_OF_BATCH)})


def runner(folder: str, library: Any, open_table: Callable[[str], Any]) -> Run:
    """Return the search of a library whose queries are those of pylance."""
    dataset = open_table(folder)

    def run(command: str, text: str) -> int:
        query = parsed(text, library)
        found = 1
        if command.startswith("TOP_"):
            limit = int(command.removesuffix("_COUNT").removeprefix("TOP_"))
            dataset.to_table(columns=["_rowid", "_score"], full_text_query=query, limit=limit)
        if command.endswith("COUNT"):
            found = dataset.scanner(full_text_query=query).count_rows()
        return found

    return run


def parsed(text: str, library: Any) -> Any:
    """Return a query of the game: `"a b"` is a phrase, `+a +b` needs both words, `a b` needs one."""
    if text.startswith('"'):
        return library.PhraseQuery(text.strip('"'), COLUMN)
    operator = library.FullTextOperator.AND if text.startswith("+") else library.FullTextOperator.OR
    return library.MatchQuery(text.replace("+", ""), COLUMN, operator=operator)


def tantivy_runner(folder: str) -> Run:
    """Return the search of tantivy over the same documents, in memory and in one segment."""
    import tantivy  # type: ignore[import-not-found]

    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("id", stored=True)
    builder.add_text_field(COLUMN, stored=False, index_option="position")
    index = tantivy.Index(builder.build())
    writer = index.writer(num_threads=1)
    for row, text in enumerate(ld.dataset(folder).to_table([COLUMN])[COLUMN].to_pylist()):
        writer.add_document(tantivy.Document(id=row, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def run(command: str, text: str) -> int:
        query = index.parse_query(text, [COLUMN])
        if command == "COUNT":
            return int(searcher.search(query, 1, count=True).count)
        limit = int(command.removesuffix("_COUNT").removeprefix("TOP_"))
        counts = command.endswith("COUNT")
        found = searcher.search(query, limit, count=counts)
        return int(found.count) if counts else 1

    return run


def made_queries() -> dict[str, list[str]]:
    """Return queries of two and three words, and of one, in the forms of the game."""
    words, rng = vocabulary(), np.random.default_rng(1)
    ranks = (np.exp(rng.uniform(np.log(5), np.log(3_000), (QUERIES, 3)))).astype(int)
    several = [[words[rank] for rank in row[: 2 + number % 2]] for number, row in enumerate(ranks)]
    return {
        "term": [words[row[0]] for row in ranks],
        "intersection": [" ".join(f"+{word}" for word in each) for each in several],
        "union": [" ".join(each) for each in several],
        "phrase": [f'"{" ".join(each[:2])}"' for each in several],
    }


def read_queries(path: Path) -> dict[str, list[str]]:
    """Return the queries of a file of the game, by the first of their tags: a JSON object per line."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {form: [line["query"] for line in lines if form in line["tags"]] for form in FORMS}


def compare(runs: Mapping[str, Run], command: str, queries: Sequence[str]) -> None:
    """Check that all contestants count the same documents."""
    for query in queries if command.endswith("COUNT") else ():
        counts = {name: run(command, query) for name, run in runs.items()}
        assert len(set(counts.values())) == 1, f"{command} {query}: {counts}"


def run_all(run: Run, command: str, queries: Sequence[str]) -> None:
    """Run a command with each query, one after the other."""
    for query in queries:
        run(command, query)


def serve(run: Run, lines: Iterable[str]) -> None:
    """Answer lines of a command, a tab and a query, with one line each."""
    for line in lines:
        command, _, query = line.rstrip("\n").partition("\t")
        known = command == "COUNT" or command.startswith("TOP_")
        print(run(command, query) if known else "UNSUPPORTED", flush=True)


if __name__ == "__main__":
    main()
