"""Run the code blocks of a Markdown page, and compare the output that the page shows.

A page runs in an empty folder, top to bottom, as one session:

- `python` blocks share their names. `ld` is imported.
- `sql` blocks run on the variable `con`, which is `ld.connect("data")` until a block sets it. A statement ends with `;`
  at the end of a line.
- `console` blocks run their lines `$ lance-duck …`.
- A `text` block directly below another block is the output of that block: printed lines, and the last result.
- An HTML comment directly above a block changes how it runs: `<!-- raises -->` expects an error, which becomes the
  output, and `<!-- not run: reason -->` skips it. `<!-- setup` above Python code and `-->` runs code that is not shown.

`python -m support.pages PAGE …` runs pages and writes their output into their `text` blocks.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.command_line import run

import lance_duck as ld

_RANDOM = re.compile(
    r"(?<=segments )[0-9a-f]{8}(?:, [0-9a-f]{8})*|(?<=took: )[\d.]+ m?s"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[01]{24}[0-9a-f]{26}\b"
)
"""Output that differs from run to run: ids of segments and transactions, times, and names of data files."""

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>raises|not run: [^\n]*) -->\n)?"
    r"^```(?P<language>python|sql|console)\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<output>.*?)^```\n)?"
    r"|^<!-- setup\n(?P<setup>.*?)^-->\n",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A code block of a page.

    Attributes:
        language: "python", "sql" or "console".
        code: Its lines.
        line: Line number of its first line of code.
        output: Lines of the `text` block below it, or None if the page shows no output.
        output_at: First and last character of the output in the page.
        raises: The block ends with an error.
    """

    language: str
    code: str
    line: int
    output: str | None
    output_at: tuple[int, int]
    raises: bool


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that run, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        if (found["mark"] or "").startswith("not run"):
            continue
        part = "setup" if found["setup"] is not None else "code"
        line = text.count("\n", 0, found.start(part)) + 1
        raises = found["mark"] == "raises"
        yield Block(found["language"] or "python", found[part], line, found["output"], found.span("output"), raises)


def statements(sql: str) -> list[str]:
    """Return the statements of a block, without comments at line ends."""
    plain = "\n".join(re.sub(r"(?:^|\s)-- .*$", "", line) for line in sql.splitlines())
    return [part.strip() for part in re.split(r";\s*?$", plain, flags=re.MULTILINE) if part.strip()]


class Session:
    """Variables of a page while its blocks run in the working directory."""

    def __init__(self, **names: Any) -> None:
        self.names: dict[str, Any] = {"ld": ld, **names}

    def close(self) -> None:
        """Close the connection of the page."""
        if "con" in self.names:
            self.names["con"].close()

    def output(self, block: Block) -> str:
        """Run a block and return its output. An error is its output if the block expects one."""
        method = {"python": self._python, "sql": self._sql, "console": self._console}[block.language]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                result = method(block.code)
            except Exception as error:
                if not block.raises:
                    raise
                result = f"{type(error).__name__}: {error}"
            else:
                assert not block.raises, "no error"
        text = printed.getvalue() + ("" if result is None else str(result))
        text = _RANDOM.sub("…", text.replace(os.getcwd(), "…"))
        return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"

    def _python(self, code: str) -> object:
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<page>", "exec"), self.names)
        if last is None:
            return None
        result = eval(compile(ast.Expression(last.value), "<page>", "eval"), self.names)
        return None if result is None else result if isinstance(result, str) else repr(result)

    def _sql(self, code: str) -> object:
        con = self.names.setdefault("con", None) or ld.connect("data")
        self.names["con"] = con
        *before, last = statements(code)
        for statement in before:
            con.execute(statement)
        return con.sql(last)

    def _console(self, code: str) -> str:
        answers = []
        for line in re.findall(r"^\$ lance-duck (.*)$", code, re.MULTILINE):
            answer = run(*shlex.split(line, comments=True), stdin="")
            assert answer.exit_code == 0, answer.output
            answers.append(answer.stdout)
        return "".join(answers)


def run_page(page: Path, **names: Any) -> list[tuple[Block, str]]:
    """Run the blocks of a page in the working directory. Return each block with its output."""
    session = Session(**names)
    found = []
    try:
        for block in blocks(page):
            try:
                found.append((block, session.output(block)))
            except Exception as error:
                raise AssertionError(f"{page.name}:{block.line}: {block.code}\n{error!r}") from error
    finally:
        session.close()
    return found


def main(*pages: str) -> None:
    """Write the output of pages into them."""
    for page in map(Path, pages):
        page = page.resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            answers = run_page(page)
        text = page.read_text(encoding="utf-8")
        for block, output in reversed(answers):
            if block.output is not None:
                begin, end = block.output_at
                text = text[:begin] + output + text[end:]
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
