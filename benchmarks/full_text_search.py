"""How fast are full-text queries for the ten best rows?

Both libraries search one index, which pylance built with positions and without stemming. Word frequencies follow a
natural language. Each measurement runs `TIMES` queries in a row, and each case opens the table again.

Most cases repeat a query, whose filter and posting lists are then in the cache. Cases named "new words" and "new
filters" change them in every query.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from typing import Any

import lance
import lance.query as theirs
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import DATA, OURS, add_clock, chosen, clock_of, options, race, report
from benchmarks._texts import vocabulary
from benchmarks.full_text import batches
from lance_duck import query as ours

BEST = 10
TIMES = 10
NEW = 100
"""Rank of the first word that only one query uses."""
COLUMNS = ["id", "_score"]
FILTER = "id % 10 = 3"
NOTE = "Both libraries search an index that pylance built."


def main() -> None:
    """Race through questions."""
    parser = options((__doc__ or "").split("\n")[0], rows=200_000, rounds=15)
    add_clock(parser)
    arguments = parser.parse_args()
    path = table(arguments.rows)
    asked = questions()
    cases = []
    for name in chosen(asked, arguments.only):
        mine, its, more = asked[name]
        datasets = {OURS: ld.dataset(path), "pylance": lance.dataset(path)}
        contestants: dict[str, Callable[[], object]] = {
            who: partial(search, dataset, query, more, count())
            for (who, dataset), query in zip(datasets.items(), (mine, its), strict=True)
        }
        cases.append(race(name, contestants, arguments.rounds, clock_of(arguments)))
    report(f"Search {arguments.rows:,} texts for {TIMES} full-text queries", cases, arguments, NOTE)


def search(dataset: Any, query: Any, more: dict[str, Any], numbers: Iterator[int]) -> None:
    """Search for the best rows several times. `{}` in a filter becomes a new number each time."""
    for number in islice(numbers, TIMES):
        arguments = {"limit": BEST, **more}
        if "filter" in arguments:
            arguments["filter"] = arguments["filter"].format(number)
        asked = query(number) if callable(query) else query
        dataset.to_table(columns=COLUMNS, full_text_query=asked, **arguments)


def questions() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Return the queries by name, for lance-duck and for pylance, with further scan arguments."""
    known = vocabulary()
    common, often, middle, rare = (known[i] for i in (20, 60, 1_000, 20_000))

    def words(*terms: str, **more: Any) -> tuple[Any, Any, dict[str, Any]]:
        text = " ".join(terms)
        every = {"operator": "and"} if more.pop("every", False) else {}
        mine = dict.fromkeys(every, ours.FullTextOperator.AND)
        its = dict.fromkeys(every, theirs.FullTextOperator.AND)
        return ours.MatchQuery(text, "s", **more, **mine), theirs.MatchQuery(text, "s", **more, **its), {}

    def phrase(text: str) -> tuple[Any, Any, dict[str, Any]]:
        return ours.PhraseQuery(text, "s"), theirs.PhraseQuery(text, "s"), {}

    def new(ask: Callable[..., Any], count: int, **more: Any) -> tuple[Any, Any, dict[str, Any]]:
        def of(side: int) -> Callable[[int], Any]:
            return lambda number: ask(*known[NEW + count * number : NEW + count * (number + 1)], **more)[side]

        return of(0), of(1), {}

    one = words(often)
    kinds = {
        "one common term": words(common),
        "one term": words(middle),
        "one rare term": words(rare),
        "three terms OR, common": words(common, often, known[40]),
        "three terms OR, mixed": words(common, middle, rare),
        "three terms AND, common": words(common, often, known[40], every=True),
        "three terms AND, mixed": words(common, often, middle, every=True),
        "phrase of two": phrase(f"{common} {often}"),
        "fuzzy, distance 1": words(middle, fuzziness=1),
        "fuzzy, distance 1, common term": words(common, fuzziness=1),
        "fuzzy, distance 2": words(middle, fuzziness=2),
        "fuzzy, distance 1, same first letters": words(middle, fuzziness=1, prefix_length=3),
    }
    filtered = {
        f"{name}, with a filter": (*asked[:2], {"filter": FILTER, "prefilter": True}) for name, asked in kinds.items()
    }
    return {
        **kinds,
        "all rows of a term": (*one[:2], {"limit": None}),
        **filtered,
        "new words, one term": new(words, 1),
        "new words, three terms OR": new(words, 3),
        "new words, three terms AND": new(words, 3, every=True),
        "new words, phrase of two": new(lambda *two: phrase(" ".join(two)), 2),
        "new filters, with arithmetic": (*one[:2], {"filter": f"{FILTER} AND id >= {{}}", "prefilter": True}),
        "new filters, simple": (*one[:2], {"filter": "id < 20000 + {}", "prefilter": True}),
    }


def table(rows: int) -> str:
    """Write a table and its index, unless they are there."""
    path = DATA / f"full-text-search-{rows}.lance"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        reader = pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64(), "s": pa.string()}), batches(rows))
        dataset = lance.write_dataset(reader, unfinished, max_rows_per_file=100_000)
        dataset.create_scalar_index("s", "INVERTED", stem=False, remove_stop_words=False, with_position=True)
        unfinished.rename(path)
    return str(path)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
