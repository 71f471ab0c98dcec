"""Files of SQL statements with the rows that they give: `tests/sql/statements/*.sql`.

A statement ends with a semicolon at the end of a line. What it gives stands below it:

    UPDATE t SET id = id + 1 RETURNING id, name;
    --> 2 | a
    --> 3 | NULL

A line `--> …` is a row, with `|` between its values, of which `…` stands for any; the order of rows counts where the
statement says ORDER BY.
A line `--! …` is a part of the error that it fails with. Neither: it gives no rows. A line `--only lance` before a
statement says that DuckDB's own tables have no such statement, `--only duckdb 2` that DuckDB 1 has not; `--only` and
`--!` may stand together. A line `--= …` names what the statements below it are about. `{folder}` is a folder of the
test. Other lines that begin with `--` are comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

Run = Callable[[str], Sequence[Sequence[Any]]]
ANY = "…"


@dataclass
class StatementCase:
    """A statement and what it gives.

    Attributes:
        line: The line that it begins on.
        sql: Its text, without the semicolon.
        rows: Its rows, as texts.
        error: A part of its error; None: it succeeds.
        only: Where it runs: "lance", "duckdb 2".
        about: What the nearest line `--= …` above it says.
    """

    line: int
    sql: str
    rows: list[list[str]] = field(default_factory=list)
    error: str | None = None
    only: set[str] = field(default_factory=set)
    about: str = ""

    def check(self, run: Run, *, is_native: bool) -> None:
        """Run the statement and compare; what DuckDB says of its own tables when it refuses is its own matter."""
        if self.error is None:
            rows = [[text_of(value) for value in row] for row in run(self.sql)]
            is_ordered = re.search(r"\border\s+by\b", self.sql, re.IGNORECASE)
            wanted = self.rows
            if not is_ordered:
                rows, wanted = sorted(rows), sorted(wanted)
            assert list(map(len, rows)) == list(map(len, wanted)), f"gave {rows}, not {wanted}"
            pairs = [pair for row, texts in zip(rows, wanted, strict=True) for pair in zip(row, texts, strict=True)]
            assert all(text in (value, ANY) for value, text in pairs), f"gave {rows}, not {wanted}"
            return
        with pytest.raises(Exception, match=None if is_native else re.escape(self.error)):
            run(self.sql)


def read_cases(path: Path) -> Iterator[StatementCase]:
    """Read the statements of a file."""
    case, only, text, begun, about = None, set[str](), list[str](), 0, ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("-->"):
            assert case is not None, f"{path.name}:{number}: rows of no statement"
            case.rows.append([value.strip() for value in line[3:].split("|")])
        elif line.startswith("--!"):
            assert case is not None, f"{path.name}:{number}: an error of no statement"
            case.error = line[3:].strip()
        elif line.startswith("--="):
            about = line[3:].strip()
        elif line.startswith("--only "):
            only.add(line.removeprefix("--only ").strip())
        elif text or (line.strip() and not line.startswith("--")):
            begun = begun or number
            text.append(line)
            if line.rstrip().endswith(";"):
                if case is not None:
                    yield case
                case = StatementCase(begun, "\n".join(text).rstrip().removesuffix(";"), only=only, about=about)
                only, text, begun = set(), [], 0
    assert not text, f"{path.name}:{begun}: a statement without a semicolon"
    if case is not None:
        yield case


def text_of(value: object) -> str:
    """Return a value as these files spell it."""
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)
