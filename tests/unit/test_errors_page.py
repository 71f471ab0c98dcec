"""The page of errors, which is made from the docstrings and the source."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from lance_duck import errors

DOCS = Path(__file__).parents[2] / "docs"
PUBLIC = [kind for name, kind in vars(errors).items() if inspect.isclass(kind) and kind.__module__ == errors.__name__]


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages_of_errors", DOCS / "generated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(generated: ModuleType) -> str:
    return str(generated.errors())


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_public_class_has_a_meaning_a_cause_and_a_remedy(generated: ModuleType, kind: type) -> None:
    summary, cause, remedy = generated.meaning(kind)
    for text in (summary, cause, remedy):
        assert text.endswith(".")
        assert len(text.split()) <= 40


def test_every_public_class_is_on_the_page_once(page: str) -> None:
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == [kind.__name__ for kind in PUBLIC]
    assert page.count("- **Cause:**") == page.count("- **Remedy:**") == len(PUBLIC)


def test_the_tables_are_short_and_their_rows_are_messages_of_the_source(generated: ModuleType, page: str) -> None:
    cells = [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and "---" not in line]
    assert len(cells) > 60
    assert all(len(row) == 2 and max(len(cell.split()) for cell in row) <= generated.MOST_WORDS + 1 for row in cells)
    for section in page.split("\n## "):
        assert section.count("\n| ") <= generated.MOST_MESSAGES + 2


def test_links_lead_to_sections_and_pages_that_exist(page: str) -> None:
    names = {name.lower() for name in re.findall(r"^## (\w+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", page)) <= names
    for path in (DOCS / "reference" / "errors.md", DOCS / "guides" / "troubleshooting.md"):
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+\.md)", text):
            assert (path.parent / target).exists(), target
        for target in re.findall(r"\{include\} (\S+)", text):
            assert target == "../generated/errors.md"
