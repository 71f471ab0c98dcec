"""Formatting of results on stdout: tables, CSV and JSON lines.

On a terminal, results are tables for people. In a pipe, they are CSV with a header. With --json, they are one JSON
object per line (`info` writes a single object). CSV and JSON write binary values as hexadecimal digits, times as
ISO 8601, and all digits of decimals. CSV writes nested values as JSON and nulls as empty cells. Sizes are in units of
1,024 bytes on a terminal, and exact elsewhere.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from rich import box
from rich.table import Table
from rich.text import Text

from lance_duck.cli.terminal import ESCAPED, Console, printable
from lance_duck.markup import size_text

Row = Mapping[str, Any]


_JSON_ESCAPES: Final = {point: f"\\u{point:04x}" for point in ESCAPED if point > 0x1F}
"""Escapes of control characters that JSON allows in strings but terminals interpret."""


class ByteCount(int):
    """A size in bytes: shown to people in units of 1,024, and to programs as an exact integer."""

    @classmethod
    def of(cls, count: int | None) -> ByteCount | None:
        """Wrap a size in bytes. None remains None."""
        return None if count is None else cls(count)

    def __str__(self) -> str:
        """Return the size as "512 B", "1.5 KiB" and so on."""
        return size_text(int(self))


class _CsvLines:
    r"""CSV lines on stdout, ending with `\n`. The CSV writer's line end is `\r\n`, so it quotes both characters."""

    def write(self, line: str) -> int:
        return sys.stdout.write(line.removesuffix("\r\n") + "\n")


class Form(StrEnum):
    """Output format for rows."""

    table = "table"
    csv = "csv"
    json = "json"


def usual_form(as_json: bool = False) -> Form:
    """Return the default format for stdout."""
    if as_json:
        return Form.json
    return Form.table if sys.stdout.isatty() else Form.csv


def show(rows: Iterable[Row], columns: Sequence[str], as_json: bool = False, max_rows: int = 100) -> None:
    """Write rows to stdout in the default format. A terminal shows at most `max_rows` rows."""
    write_rows(rows, columns, usual_form(as_json), max_rows)


def write_rows(rows: Iterable[Row], columns: Sequence[str], form: Form, max_rows: int = 100) -> None:
    """Write rows to stdout in a given format. A table shows at most `max_rows` rows."""
    if form is Form.json:
        for row in rows:
            write_json(row)
    elif form is Form.table:
        show_table(rows, columns, max_rows, Console())
    else:
        writer = csv.writer(_CsvLines())
        writer.writerow(columns)
        writer.writerows([text(row[name]) for name in columns] for row in rows)


def write_json(value: Any) -> None:
    """Write a value as one line of JSON: exact, and without control characters."""
    print(json.dumps(plain(value), ensure_ascii=False).translate(_JSON_ESCAPES))


def report(facts: Row, as_json: bool) -> None:
    """Write the outcome of a command: one JSON object, or one line per fact."""
    if as_json:
        show([facts], list(facts), as_json)
    else:
        show(({"field": name, "value": value} for name, value in facts.items()), ["field", "value"])


def show_table(rows: Iterable[Row], columns: Sequence[str], max_rows: int, console: Console) -> None:
    """Draw a terminal table of at most `max_rows` rows."""
    numbered = iter(rows)
    shown = list(islice(numbered, max_rows))
    drawing = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        numeric = any(isinstance(row[name], int | float | Decimal) for row in shown)
        drawing.add_column(printable(name), justify="right" if numeric else "left", overflow="fold")
    for row in shown:
        drawing.add_row(*(_cell(row[name]) for name in columns))
    console.print(drawing, markup=False)
    if next(numbered, None) is not None:
        console.print(f"first {max_rows:,} rows; --max-rows shows more, a pipe gets all", style="dim")


def plain(value: Any) -> Any:
    """Convert a value to JSON types."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, ByteCount):
        return int(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def text(value: Any) -> str:
    """Format a value as one CSV cell."""
    simple = plain(value)
    if simple is None:
        return ""
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)


def _cell(value: Any) -> str | Text:
    if isinstance(value, Text):
        return value
    if isinstance(value, timedelta | ByteCount):
        return str(value)
    content = printable(text(value))
    return content if len(content) <= 200 else f"{content[:197]}…"
