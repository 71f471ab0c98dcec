"""Pages that other files fill: what of the format is read and written, the commands, and the notebooks."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer
from typer.cli import get_docs_for_click

import lance_duck_command
from lance_duck.encoding.codecs.registry import READERS
from lance_duck.encoding.v20.registry import READERS as READERS_20
from lance_duck.file.reader import LEGACY_VERSIONS, VERSIONS
from lance_duck.file.write.writer import VERSIONS as WRITTEN
from lance_duck.index.registry import KINDS
from lance_duck.wire.flags import READABLE, WRITABLE, flag_names


def write(folder: Path) -> None:
    """Write each page into a folder, which is made."""
    folder.mkdir(exist_ok=True)
    shutil.copytree(
        folder.parents[1] / "notebooks", folder / "notebooks", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.md")
    )
    for name, text in {
        "file_versions": file_versions(),
        "encodings": encodings(),
        "flags": flags(),
        "indexes": indexes(),
        "command_line": command_line(),
    }.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def file_versions() -> str:
    """Return a table of the versions of data files."""
    read = {f"{major}.{minor}" for major, minor in VERSIONS.values()} | set(LEGACY_VERSIONS.values())
    names = sorted(read | set(WRITTEN))
    return _table(
        ("version of data files", "read", "written"), ((name, name in read, name in WRITTEN) for name in names)
    )


def encodings() -> str:
    """Return a table of the encodings that are read, by the names that the messages of the format give them."""
    rows = [("2.1 to 2.3", ", ".join(f"`{name}`" for name in READERS))]
    rows.append(("2.0", ", ".join(f"`{name}`" for name in (*READERS_20, "list"))))
    return _table(("files of", "encodings"), rows)


def flags() -> str:
    """Return a table of the feature flags of manifests."""
    bits = [1 << bit for bit in range(17)]
    return _table(
        ("flag", "tables that have it are read", "and changed"),
        ((flag_names(bit)[0], bool(bit & READABLE), bool(bit & WRITABLE)) for bit in bits),
    )


def indexes() -> str:
    """Return a table of the kinds of indexes that are built and used."""
    return _table(
        ("kind", "message in the manifest"),
        ((kind.name, f"`{kind.type_url.rpartition('/')[2]}`") for kind in KINDS),
    )


def command_line() -> str:
    """Return the help of every command."""
    command = typer.main.get_command(lance_duck_command.app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="lance-duck")
    return text.partition("\n")[2]  # the page has a title of its own


def _table(head: Sequence[str], rows: Iterable[Sequence[str | bool]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: str | bool) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"
