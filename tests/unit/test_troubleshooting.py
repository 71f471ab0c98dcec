"""The blocks of the page on troubleshooting run, and give the messages that the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lance_duck as ld

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "troubleshooting.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run_sql(con: ld.Connection, block: str) -> str:
    """Run the statements of a block. Returns the message of an error, which ends the block."""
    for statement in filter(str.strip, block.split(";\n")):
        try:
            con.execute(statement).fetchall()
        except (ld.LanceDuckError, duckdb.Error) as error:
            return str(error)
    return ""


def shows(expected: str, output: str) -> bool:
    """Return whether a text block shows an output, in which "…" stands for any text."""
    pattern = ".*".join(re.escape(part.strip("\n")) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


@pytest.mark.parametrize("title", SECTIONS)
def test_a_section_runs_and_shows_the_messages_of_the_software(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    blocks = [(match[1], match[2]) for match in BLOCK.finditer(SECTIONS[title])]
    scope: dict[str, Any] = {}
    with ld.connect(str(tmp_path)) as con:
        for at, (language, block) in enumerate(blocks):
            shown = blocks[at + 1][1] if at + 1 < len(blocks) and blocks[at + 1][0] == "text" else None
            if language == "python":
                exec(block, scope)
                output = capsys.readouterr().out
            elif language == "sql":
                output = run_sql(con, block)
                assert not output or shown is not None, output
            else:
                continue
            if shown is not None:
                assert shows(shown, output), output


def test_messages_without_a_block_are_in_the_source() -> None:
    package = Path(ld.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    for fact in (
        "feature flags",
        "check the credentials in storage_options or the environment; they may have expired",
        "Spark's workers run a Python without lance-duck",
        "does it ahead",
        "nothing was committed, because another writer came first",
        "the transaction is committed only in part, because other writers have built on its versions",
        "repeat the changes of the other tables, or undo these with new changes",
        "the file size differs from the manifest",
    ):
        assert fact in source
        assert fact in PAGE
