"""Missing, truncated or damaged files of index segments: queries still answer."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
from corruption.containers import column_variants, manifest_path, metadata_start
from corruption.harness import assert_survives
from corruption.mutations import at_random, every_byte, every_length, every_word
from corruption.sound import FILTERS, INDEXES
from corruption.test_damaged_files import damage, some, some_mutations

import lance_duck as ld
from lance_duck.errors import IndexWarning
from lance_duck.index import search
from lance_duck.index.catalog import Segment, catalog

few_or_many = pytest.mark.parametrize("amount", [6, pytest.param(1500, marks=pytest.mark.slow, id="many")])
pytestmark = pytest.mark.timeout(3000)

FILES = [
    ("i", "page_data.lance"),
    ("i", "page_lookup.lance"),
    ("f", "page_data.lance"),
    ("f", "page_lookup.lance"),
    ("s", "bitmap_page_lookup.lance"),
    ("l", "bitmap_page_lookup.lance"),
    ("z", "zonemap.lance"),
    ("b", "bloomfilter.lance"),
    ("g", "ngram_postings.lance"),
]
FIRST = [("i", "page_data.lance"), ("s", "bitmap_page_lookup.lance"), ("z", "zonemap.lance")]
each_file = pytest.mark.parametrize(("column", "name"), FILES)


def segment_of(table: Path, column: str) -> Segment:
    (index,) = catalog(ld.dataset(table).handle.snapshot).over(column)
    return index.segments[0]


def asked_of(column: str) -> list[str]:
    return [text for text in FILTERS if text.startswith((f"{column} ", f"array_has_any({column},"))]


def test_every_index_file_is_covered_by_the_damage_tests(indexed: Path) -> None:
    listed = {(c, name) for c in INDEXES for name, _ in segment_of(indexed, c).metadata.files}
    assert listed == set(FILES)


@pytest.mark.parametrize("cut", [None, 0.5, -1])
@each_file
def test_without_a_file_the_rows_are_scanned(
    column: str, name: str, cut: float | None, indexed: Path, tmp_path: Path
) -> None:
    table = tmp_path / "t.lance"
    shutil.copytree(indexed, table)
    truth = [ld.dataset(table).to_table(["z"], filter=text, use_scalar_index=False) for text in asked_of(column)]
    segment = segment_of(table, column)
    target = table / segment.metadata.directory / name
    data = target.read_bytes()
    target.unlink()
    if cut is not None:
        target.write_bytes(data[: int(cut * len(data)) if isinstance(cut, float) else cut])
    forget(segment)
    dataset = ld.dataset(table)
    with pytest.warns(IndexWarning, match=str(segment.uuid)) as record:
        found = [dataset.to_table(["z"], filter=text) for text in asked_of(column)]
    assert [each.filename for each in record] == [__file__]
    assert name in str(record[0].message)
    assert found == truth
    problems = [p for p in dataset.find_problems() if str(segment.uuid) in p.where]
    assert len(problems) == 1


def forget(segment: Segment) -> None:
    """Allow a warning for a segment that earlier tests have already reported."""
    search._WARNED._uuids.discard(segment.uuid)


@few_or_many
@pytest.mark.parametrize(
    ("column", "name"), [f if f in FIRST else pytest.param(*f, marks=pytest.mark.slow) for f in FILES]
)
def test_a_damaged_index_file_gives_an_error_or_correct_rows(
    column: str, name: str, amount: int, indexed: Path, tmp_path: Path
) -> None:
    target = indexed / segment_of(indexed, column).metadata.directory / name
    data = target.read_bytes()
    start, end = metadata_start(data), len(data)
    places = itertools.chain(every_byte(0, min(start, 2000)), every_word(0, min(start, 2000), 4))
    metadata = itertools.chain(every_byte(start, end), every_length(start, end), every_word(start, end, 8))
    damaged = [
        *some_mutations(data, places, amount),
        *some_mutations(data, metadata, amount),
        *some(column_variants(data), amount),
        *damage(data, at_random(len(data), 1, amount)),
    ]
    assert_survives(indexed, target, damaged, tmp_path, ([column], asked_of(column)))


@few_or_many
def test_a_damaged_list_of_segments(amount: int, indexed: Path, tmp_path: Path) -> None:
    target = manifest_path(indexed)
    data = target.read_bytes()
    end = min(len(data), 1500)  # the index section is first
    mutations = itertools.chain(every_byte(0, end), every_word(0, end, 4))
    assert_survives(indexed, target, some_mutations(data, mutations, 2 * amount), tmp_path, (list(INDEXES), FILTERS))
