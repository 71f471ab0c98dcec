"""How many statements in the SQL tests of DuckDB's `lance` extension work here?

    python -m benchmarks.extension_tests CHECKOUT [--only index_ddl …] [--failures]

CHECKOUT contains the extension's repository. The statements come from `test/sql/*.test`. They run in a copy of `test`,
with one connection per file. Files that need a service are skipped. An expected error passes with any message.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import lance_duck as ld

PASSED, ACCEPTED, REFUSED, OTHER = (
    "as expected",
    "runs where the extension refuses",
    "refused here",
    "gives something else",
)
REGEX = "<REGEX>:"
WRITTEN = Path("test/.tmp")


@dataclass(frozen=True)
class Case:
    """One statement of a file.

    Attributes:
        line: Line number in the file.
        kind: `ok`, `error` or `query`.
        sort: `rowsort`, `valuesort` or nothing.
        sql: The statement.
        expected: Lines of its rows, or of the error.
    """

    line: int
    kind: str
    sort: str
    sql: str
    expected: tuple[str, ...]


def cases(file: Path) -> Iterator[Case]:
    """Yield the statements of a file of tests."""
    lines = [*file.read_text(encoding="utf-8").splitlines(), ""]
    at = 0
    while at < len(lines):
        head = lines[at].split()
        at += 1
        if head[:1] not in (["statement"], ["query"]):
            continue
        first = at
        at = next(i for i in range(first, len(lines)) if not lines[i].strip() or lines[i] == "----")
        sql, expected = "\n".join(lines[first:at]), []
        if lines[at] == "----":
            end = next(i for i in range(at, len(lines)) if not lines[i].strip())
            expected, at = lines[at + 1 : end], end
        kind = "query" if head[0] == "query" else head[1]
        yield Case(first + 1, kind, head[2] if len(head) > 2 else "", sql, tuple(expected))


def outcome(case: Case, connection: Any) -> tuple[str, str]:
    """Run a statement, and return the outcome with the difference from the expected rows."""
    try:
        rows = connection.execute(case.sql).fetchall()
    except (duckdb.Error, ld.LanceDuckError) as error:
        return (PASSED if case.kind == "error" else REFUSED), str(error).partition("\n")[0]
    if case.kind == "error":
        return ACCEPTED, ""
    if case.kind == "ok":
        return PASSED, ""
    expected = [line.split("\t") for line in case.expected]
    if rows and len(expected) == len(rows) * len(rows[0]) and all(len(line) == 1 for line in expected):
        values = [line[0] for line in expected]
        expected = [values[i : i + len(rows[0])] for i in range(0, len(values), len(rows[0]))]
    given = [[text(value) for value in row] for row in rows]
    if case.sort == "rowsort":
        given, expected = sorted(given), sorted(expected)
    same = len(given) == len(expected) and all(map(agrees, given, expected))
    return (PASSED if same else OTHER), str(given)[:200]


def text(value: Any) -> str:
    """Return a value as files of tests spell it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return "(empty)" if value == "" else str(value)


def agrees(given: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether a row is the expected one."""
    return len(given) == len(expected) and all(map(value_agrees, given, expected))


def value_agrees(given: str, expected: str) -> bool:
    """Return whether a value is the expected one: booleans may be numbers, and fractions are rounded."""
    if expected.startswith(REGEX):
        return re.fullmatch(expected.removeprefix(REGEX), given) is not None
    if given == expected or {"true": "1", "false": "0"}.get(given) == expected:
        return True
    try:
        return math.isclose(float(given), float(expected), rel_tol=1e-9)
    except ValueError:
        return False


def run(file: Path, failures: bool) -> Counter[str]:
    """Run a file in the current folder, and count what becomes of its statements."""
    counts: Counter[str] = Counter()
    shutil.rmtree(WRITTEN, ignore_errors=True)
    WRITTEN.mkdir()
    with ld.connect() as connection:
        for case in cases(file):
            result, found = outcome(case, connection)
            counts[result] += 1
            if failures and result != PASSED:
                print(f"{file.name}:{case.line}: {result}: {found}\n    {case.sql}\n")
    return counts


def main() -> None:
    """Run the files, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", nargs="*", default=None, help="names of files without .test")
    parser.add_argument("--failures", action="store_true", help="print each statement that does not go as expected")
    arguments = parser.parse_args()
    totals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(arguments.checkout.expanduser() / "test", "test")
        for file in sorted(Path("test/sql").glob("*.test")):
            needs_service = re.search(r"^require-env", file.read_text(encoding="utf-8"), re.MULTILINE)
            if needs_service or (arguments.only is not None and file.stem not in arguments.only):
                continue
            counts = run(file, arguments.failures)
            totals += counts
            print(f"{file.stem:40} {counts[PASSED]:4} of {counts.total():4}")
    print(f"\n{totals.total()} statements on DuckDB {duckdb.__version__}")
    for name in (PASSED, ACCEPTED, REFUSED, OTHER):
        print(f"{totals[name]:4} {name}")


if __name__ == "__main__":
    main()
