"""The pages of the site, by their names."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
MADE_BY_SPHINX = {"search", "genindex", "modindex", "py-modindex"}


def test_no_page_has_the_name_of_one_that_the_generator_makes() -> None:
    pages = {path.stem for path in DOCS.glob("*.md")}
    assert "index" in pages
    assert not pages & MADE_BY_SPHINX
