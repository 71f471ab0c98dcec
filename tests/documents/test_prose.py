"""Sentences of the code and of the documents stay as plain as the field's: `support/prose.py` measures them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from support.prose import ROOT, Sentence, code_by_room, of_errors, of_markdown, pages, rate

WHOLE, ROOM = 30, 60
"""Sentences with a pattern of 1,000: in the whole package, and in one room or page."""

MEAN_SENTENCE, LONGEST_SENTENCE = 15, 40
MEAN_CELL, LONGEST_CELL = 12, 40
"""Words."""

NAMES = [page.relative_to(ROOT).as_posix() for page in pages()]


@cache
def sentences_of(page: str) -> list[Sentence]:
    return list(of_markdown(ROOT / page))


def too_many(found: list[Sentence]) -> list[str]:
    """Return the sentences with a pattern if they are more than a room or page may have."""
    bad = [f"{sentence} {sentence.patterns}" for sentence in found if sentence.words >= 4 and sentence.patterns]
    return bad if len(bad) > max(1, len(found) * ROOM / 1000) else []


def test_the_package_and_each_of_its_rooms_have_few_sentences_with_a_pattern() -> None:
    rooms = code_by_room()
    assert not {room: bad for room, found in rooms.items() if (bad := too_many(found))}
    assert rate(sentence for found in rooms.values() for sentence in found) <= WHOLE


def test_error_messages_have_few_patterns() -> None:
    found = [sentence for path in sorted((ROOT / "lance_duck").rglob("*.py")) for sentence in of_errors(path)]
    assert len(found) > 500
    assert rate(found) <= WHOLE


def test_all_documents_together_have_few_sentences_with_a_pattern() -> None:
    assert rate(sentence for page in NAMES for sentence in sentences_of(page)) <= WHOLE


@pytest.mark.parametrize("page", NAMES)
def test_a_page_has_few_sentences_with_a_pattern(page: str) -> None:
    assert not too_many(sentences_of(page))


@pytest.mark.parametrize("page", NAMES)
def test_sentences_of_a_page_are_short(page: str) -> None:
    found = [sentence for sentence in sentences_of(page) if not sentence.is_cell]
    assert not [str(sentence) for sentence in found if sentence.words > LONGEST_SENTENCE]
    assert sum(sentence.words for sentence in found) <= MEAN_SENTENCE * max(len(found), 1)


@pytest.mark.parametrize("page", NAMES)
def test_table_cells_of_a_page_are_short(page: str) -> None:
    found = [sentence for sentence in sentences_of(page) if sentence.is_cell]
    assert not [str(sentence) for sentence in found if sentence.words > LONGEST_CELL]
    assert sum(sentence.words for sentence in found) <= MEAN_CELL * max(len(found), 1)


def test_a_pattern_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n\nThe rows of a page of a file of ours stay.\n\n| a cell | what is no moment is refused |\n"
    )
    assert [sentence.patterns for sentence in of_markdown(page) if sentence.words >= 4] == [
        ["chain", "ours"],
        ["is-no", "what-is"],
    ]
