"""The pages of the site, by their names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
MADE_BY_SPHINX = {"search", "genindex", "modindex", "py-modindex"}


def test_no_page_has_the_name_of_one_that_the_generator_makes() -> None:
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert "index" in pages
    assert not pages & MADE_BY_SPHINX


def test_every_extra_is_explained_or_for_developers() -> None:
    text = (DOCS / "start" / "installation.md").read_text(encoding="utf-8")
    section = text.split("## Extras")[1].split("## ")[0]
    explained, developers = re.findall(r"^\| `(\w+)`", section, re.MULTILINE), section.split("next to this package.")[1]
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*explained, *re.findall(r"`(\w+)`", developers)} == set(project["optional-dependencies"])


def test_tables_that_the_page_on_the_format_names_exist() -> None:
    section = (DOCS / "reference" / "format.md").read_text(encoding="utf-8").split("\n## Features")[1].split("\n## ")[0]
    rows = [line.rstrip(" |").rpartition("|")[2] for line in section.splitlines() if line.startswith("| ")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    tables = DOCS.parent / "tests" / "golden" / "tables"
    assert len(named) > 10
    assert not [name for name in named if not (tables / f"{name}.lance").exists()]


def test_files_and_modules_that_decisions_name_exist() -> None:
    package = DOCS.parent / "lance_duck"
    modules = {path.relative_to(package).with_suffix("").as_posix() for path in package.rglob("*")}
    missing = []
    for page in sorted((DOCS / "decisions").glob("*.md")):
        for span in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")):
            name = span.split()[0].rstrip("/")
            if re.match(r"(?:tests|benchmarks|lance_duck)/", name):
                exists = (DOCS.parent / name).exists()
            elif re.fullmatch(r"[a-z_]+(?:/[a-z_]+)+(?:\.py)?", name):
                exists = any(f"/{module}".endswith(f"/{name.removesuffix('.py')}") for module in modules)
            else:
                continue
            missing += [] if exists else [f"{page.name}: {span}"]
    assert not missing
