"""Files of SQL statements with their expected rows: `tests/sql/statements/*.sql`.

A statement ends with a semicolon at the end of a line. The lines below it are the expected result:

    UPDATE t SET id = id + 1 RETURNING id, name;
    --> 2 | a
    --> 3 | NULL

- `--> 2 | a` is a row. `…` matches any value. The order of rows counts if the statement contains ORDER BY, or if a line
  `--ordered` is above it.
- `--~ words` are part of a value, for example in a plan. The rows are then not compared.
- `--! words` are part of an error: `--! NotFoundError: no table`. `…` matches any text in between.
- A statement without expected lines returns no rows.

Lines above a statement restrict it:

- `--only lance`: not on native tables. The files in `statements/lance` never run there.
- `--only duckdb 2`, `--only duckdb 1`: on this version of DuckDB.
- `--on other`: on a second connection to the same tables. `--on reader`: on a read-only one, and only on Lance tables.

A statement may have several of these lines.

`--= words` begins a case. Each case has separate tables: the statements above the first case of a file run before each
case. `--each name: a | b` below it repeats the case, with each of the values for `{name}`. Lines with one name add
values, lines with different names multiply. A file without cases is one case.

`{folder}` is the folder of the tables and the working directory. Other lines that begin with `--` are comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

import duckdb

from lance_duck.errors import LanceDuckError

Run = Callable[[str], Sequence[Sequence[Any]]]
ANY = "…"


@dataclass
class StatementCase:
    """A statement and its expected result.

    Attributes:
        line: The line that it begins on.
        sql: Its text, without the semicolon.
        rows: Its rows, as strings.
        holds: Parts of its values.
        error: A part of its error, or None if it succeeds.
        only: Required environment: "lance", "duckdb 2".
        ordered: The order of its rows counts.
        on: The connection that runs it: "", "other" or "reader".
        about: The title of its case.
        each: The placeholder values of its case.
    """

    line: int
    sql: str
    rows: list[list[str]] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)
    error: str | None = None
    only: set[str] = field(default_factory=set)
    ordered: bool = False
    on: str = ""
    about: str = ""
    each: dict[str, list[str]] = field(default_factory=dict)

    def with_values(self, values: dict[str, str]) -> StatementCase:
        """Put values in place of `{name}`."""

        def filled(text: str) -> str:
            for name, value in values.items():
                text = text.replace(f"{{{name}}}", value)
            return text

        return replace(
            self,
            sql=filled(self.sql),
            rows=[list(map(filled, row)) for row in self.rows],
            holds=list(map(filled, self.holds)),
            error=None if self.error is None else filled(self.error),
        )

    def check(self, run: Run, *, is_native: bool) -> None:
        """Run the statement and compare. On DuckDB's own tables any error will do."""
        try:
            rows = [[text_of(value) for value in row] for row in run(self.sql)]
        except (duckdb.Error, LanceDuckError) as error:
            text = f"{type(error).__name__}: {error}"
            if self.error is None or not (is_native or pattern_of(self.error).search(text)):
                raise
            return
        assert self.error is None, f"DID NOT RAISE: gave {rows}"
        if self.holds:
            values = "\n".join(value for row in rows for value in row)
            assert all(words in values for words in self.holds), f"gave {values}"
            return
        wanted = self.rows
        if not self.ordered and not re.search(r"\border\s+by\b", self.sql, re.IGNORECASE):
            rows, wanted = sorted(rows), sorted(wanted)
        assert list(map(len, rows)) == list(map(len, wanted)), f"gave {rows}, not {wanted}"
        pairs = [pair for row, texts in zip(rows, wanted, strict=True) for pair in zip(row, texts, strict=True)]
        assert all(text in (value, ANY) for value, text in pairs), f"gave {rows}, not {wanted}"


def read_cases(path: Path) -> Iterator[StatementCase]:
    """Read the statements of a file."""
    case: StatementCase | None = None
    following, text = StatementCase(0, ""), list[str]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if text or (line.strip() and not line.startswith("--")):
            following.line = following.line or number
            text.append(line)
            if line.rstrip().endswith(";"):
                if case is not None:
                    yield case
                case = replace(following, sql="\n".join(text).rstrip().removesuffix(";"))
                following, text = StatementCase(0, "", about=case.about, each=case.each), []
        elif line.startswith(("-->", "--~", "--!")):
            assert case is not None, f"{path.name}:{number}: an answer of no statement"
            _read_answer(case, line[2], line[3:].strip())
        else:
            _read_words(following, line)
    assert not text, f"{path.name}:{following.line}: a statement without a semicolon"
    if case is not None:
        yield case


def _read_answer(case: StatementCase, mark: str, words: str) -> None:
    if mark == ">":
        case.rows.append([value.strip() for value in words.split("|")])
    elif mark == "~":
        case.holds.append(words)
    else:
        case.error = words


def _read_words(following: StatementCase, line: str) -> None:
    """Read a line above a statement."""
    head, _, words = line.partition(" ")
    words = words.strip()
    if head == "--=":
        following.about, following.each = words, {}
    elif head == "--each":
        name, _, values = words.partition(":")
        more = [value.strip() for value in values.split(" | ")]
        following.each = following.each | {name: following.each.get(name, []) + more}
    elif head == "--only":
        following.only = following.only | {words}
    elif head == "--ordered":
        following.ordered = True
    elif head == "--on":
        following.on = words


def runs_of(path: Path) -> Iterator[list[StatementCase]]:
    """Read what runs on the same tables: a case with the statements above the first one, for each of its values."""
    groups = [list(cases) for _, cases in groupby(read_cases(path), lambda case: case.about)]
    before = groups.pop(0) if groups and not groups[0][0].about else []
    for cases in groups:
        each = cases[0].each
        for values in product(*each.values()):
            named = dict(zip(each, values, strict=True))
            yield [case.with_values(named) for case in [*before, *cases]]
    if not groups:
        yield before


def pattern_of(words: str) -> re.Pattern[str]:
    """Return a pattern for words in which `…` matches any text."""
    return re.compile(".*".join(re.escape(part.strip()) for part in words.split(ANY)), re.DOTALL)


def text_of(value: object) -> str:
    """Return a value as these files spell it."""
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)
