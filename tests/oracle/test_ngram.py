"""N-gram indexes: file contents equal those of pylance, and both libraries use and maintain one index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

import lance_duck as ld
from lance_duck.rows.row_set_bytes import read_treemap

WORDS = [
    "hello",
    "Hello World",
    "yellow",
    "Straße 12",
    "İstanbul",
    "\u212aelvin",
    "naïve café",
    "x-y-z",
    "日本語",
    "he",
]


def text_of(number: int) -> str | None:
    if number % 11 == 4:
        return None
    return " ".join(WORDS[(number * k) % len(WORDS)] for k in range(1, number % 4 + 1)) + (
        "" if number % 3 else str(number)
    )


def texts(numbers: np.ndarray) -> pa.Array:
    return pa.array([text_of(number) for number in numbers.tolist()], pa.string())


def write(path: Path, *, stable: bool = False) -> str:
    numbers = np.arange(100)
    data = pa.table({"id": numbers, "x": texts(numbers)})
    lance.write_dataset(data, str(path), max_rows_per_file=30, enable_stable_row_ids=stable)
    return str(path)


def index_file(uri: str) -> tuple[pa.Schema, dict[int, list[int]]]:
    """Return the schema, and rows by token, of the only index of a table."""
    (file,) = Path(uri).glob("_indices/*/ngram_postings.lance")
    table = LanceFileReader(str(file)).read_all().to_table()
    tokens = table["tokens"].to_pylist()
    assert tokens == sorted(tokens)
    lists = [list(read_treemap(each, uri)) for each in table["posting_list"].to_pylist()]
    return table.schema, dict(zip(tokens, lists, strict=True))


@pytest.mark.parametrize("stable", [False, True])
def test_index_files_equal_those_of_pylance(tmp_path: Path, stable: bool) -> None:
    theirs, ours = write(tmp_path / "theirs.lance", stable=stable), write(tmp_path / "ours.lance", stable=stable)

    lance.dataset(theirs).create_scalar_index("x", "NGRAM")
    ld.dataset(ours).create_scalar_index("x", "NGRAM")

    (schema, rows), (expected_schema, expected) = index_file(ours), index_file(theirs)
    assert schema.equals(expected_schema, check_metadata=True)
    assert rows == expected
    (one,), (other,) = lance.dataset(ours).describe_indices(), lance.dataset(theirs).describe_indices()
    assert (one.type_url, one.num_rows_indexed) == (other.type_url, other.num_rows_indexed)
    versions = [[segment.index_version for segment in each.segments] for each in (one, other)]
    assert versions == [[0], [0]]
    figures = [lance.dataset(uri).stats.index_stats("x_idx") for uri in (ours, theirs)]
    for figure in figures:
        figure.pop("updated_at_timestamp_ms")
    assert figures[0] == figures[1]
    mine = ld.dataset(ours).index_statistics("x_idx")
    assert {name: mine[name] for name in figures[0]} == figures[0]


def test_every_unicode_character_is_normalised_like_pylance(tmp_path: Path) -> None:
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    data = pa.table({"x": [f"z9{chr(point)}9z" for point in points]})
    found = []
    for module, name in ((lance, "theirs"), (ld, "ours")):
        uri = str(tmp_path / f"{name}.lance")
        lance.write_dataset(data, uri, max_rows_per_file=2_000_000)
        module.dataset(uri).create_scalar_index("x", "NGRAM")
        found.append(index_file(uri)[1])
    assert found[0] == found[1]


FILTERS = {
    "contains(x, 'ello')": True,
    "contains(x, 'llo W')": True,
    "contains(x, 'naïve')": True,
    "contains(x, 'Straße') AND id > 7": True,
    "contains(x, 'nothing')": True,
    "x LIKE '%ello%'": True,
    "x LIKE 'hel%low%'": True,
    "x LIKE '%elvin'": True,
    "starts_with(x, 'Hell')": True,
    "regexp_match(x, 'h.llo')": True,
    "regexp_match(x, '(yellow|caf. )')": True,
    "contains(x, 'he')": False,
    "contains(lower(x), 'hello world')": False,
    "x LIKE 'h_llo%'": True,
    "x ILIKE '%HELLO%'": False,
    "ends_with(x, 'world')": False,
    "NOT contains(x, 'ello')": False,
    "contains(x, 'ello') OR contains(x, 'café')": True,
    "x = 'yellow'": False,
    "x IS NULL": False,
}
"""Filters, and whether pylance uses the index for them."""


def ids(dataset: Any, filter_: str, **options: Any) -> list[int]:
    found: list[int] = dataset.scanner(columns=["id"], filter=filter_, **options).to_table()["id"].to_pylist()
    return sorted(found)


def check(uri: str, filters: Sequence[str] = tuple(FILTERS)) -> None:
    """Check that pylance uses the index, and that both libraries give the same answers with and without it."""
    theirs, ours = lance.dataset(uri), ld.dataset(uri)
    for filter_ in filters:
        asked = FILTERS[filter_]
        plan = theirs.scanner(filter=filter_).explain_plan()
        assert ("ScalarIndexQuery" in plan) == asked, plan
        expected = ids(theirs, filter_, use_scalar_index=False)
        assert ids(theirs, filter_) == expected, filter_
        assert ids(ours, filter_) == expected, filter_
        assert ids(ours, filter_, use_scalar_index=False) == expected, filter_
        assert ours.count_rows(filter_) == len(expected), filter_


def appended(dataset: Any) -> None:
    numbers = np.arange(25) + dataset.count_rows() + 1000
    module = lance if isinstance(dataset, lance.LanceDataset) else ld
    module.write_dataset(pa.table({"id": numbers, "x": texts(numbers)}), dataset.uri, mode="append")


CHANGES: dict[str, Callable[[Any], object]] = {
    "append": appended,
    "delete": lambda dataset: dataset.delete("id % 9 = 2"),
    "update": lambda dataset: dataset.update({"x": "'say hello again'"}, where="id % 11 = 3"),
    "optimize": lambda dataset: dataset.optimize.optimize_indices(),
    "add a segment": lambda dataset: dataset.optimize.optimize_indices(num_indices_to_merge=0),
    "compact": lambda dataset: dataset.optimize.compact_files(target_rows_per_fragment=60),
}
LIFE = ["append", "delete", "optimize", "update", "compact", "append", "add a segment", "compact", "optimize"]
ASKED = ("contains(x, 'ello')", "x LIKE '%elvin'", "x ILIKE '%HELLO%'", "NOT contains(x, 'ello')")


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("builder", "turns"), [(ld, "pylance"), (lance, "ours"), (lance, "both")])
def test_both_libraries_maintain_one_ngram_index(tmp_path: Path, builder: Any, turns: str, stable: bool) -> None:
    uri = write(tmp_path / "t.lance", stable=stable)
    builder.dataset(uri).create_scalar_index("x", "NGRAM")
    for step, change in enumerate(LIFE):
        ours = turns == "ours" or (turns == "both" and step % 2 == 0)
        CHANGES[change]((ld if ours else lance).dataset(uri))
        check(uri, ASKED)
    check(uri)
    assert ld.dataset(uri).find_problems() == []


def test_the_ngram_index_answers_more_filters_than_in_pylance(tmp_path: Path) -> None:
    uri = write(tmp_path / "t.lance")
    lance.dataset(uri).create_scalar_index("x", "NGRAM")
    ours = ld.dataset(uri)
    for filter_ in (
        "x ILIKE '%HELLO%'",
        "contains(lower(x), 'hello world')",
        "ends_with(x, 'world')",
        "contains(x, 'ello') OR x ILIKE '%CAF%'",
        "x = 'yellow'",
        "regexp_like(x, 'yel+ow')",
        "x ~ '.*ello.*'",
    ):
        assert "ScalarIndexQuery" in ours.scanner(filter=filter_).explain_plan(), filter_
        assert ids(ours, filter_) == ids(ours, filter_, use_scalar_index=False)


def test_an_index_without_rows_is_created(tmp_path: Path) -> None:
    uri = write(tmp_path / "t.lance")
    ld.dataset(uri).create_scalar_index("x", "NGRAM", train=False)
    lance.dataset(uri).optimize.optimize_indices()
    check(uri)
