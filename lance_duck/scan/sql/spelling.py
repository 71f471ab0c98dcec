"""Converts Lance's SQL dialect to DuckDB's. They differ in quoted names, keywords as names, `arrow_cast` and `0xff`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator.expressions import query
from lance_duck.scan.identifiers import quoted
from lance_duck.scan.sql.tokens import COMMENT, SqlToken, tokens

QUOTED: Final = re.compile(
    rf"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(\w*)\$.*?\$\1\$
        | {COMMENT} | `(?P<name>(?:[^`]|``)*)`""",
    re.DOTALL | re.VERBOSE,
)
"""Pattern of string literals, quoted names and comments. Their contents are not SQL."""

_QUOTED_OR_WORD: Final = re.compile(
    QUOTED.pattern + r"| (?<![\w.$:])(?P<word>[A-Za-z_]\w*)(?!\w|\s*\()", re.DOTALL | re.VERBOSE
)
_GRAMMAR: Final = frozenset(
    """
    all and any array as asymmetric at between both case cast collate distinct exists false generated glob ilike in is
    isnull lambda leading like map not notnull null on or similar some struct symmetric trailing true try_cast tuple
    unpack where with
    """.split()  # noqa: SIM905
)
"""DuckDB's reserved words that have a meaning inside an expression."""

_CALLS: Final = frozenset(("extract", "trim", "substring", "overlay"))
_GRAMMAR_AFTER: Final = {
    **dict.fromkeys(("when", "then", "else", "end"), frozenset(("case",))),
    "from": _CALLS | {"distinct"},
    "for": _CALLS,
}
"""Reserved words that have a meaning inside an expression only after certain other words."""

_CAST: Final = "arrow_cast"
_PLAIN: Final = {
    "Int8": "TINYINT",
    "Int16": "SMALLINT",
    "Int32": "INTEGER",
    "Int64": "BIGINT",
    "UInt8": "UTINYINT",
    "UInt16": "USMALLINT",
    "UInt32": "UINTEGER",
    "UInt64": "UBIGINT",
    "Float32": "FLOAT",
    "Float64": "DOUBLE",
    "Boolean": "BOOLEAN",
    "Date32": "DATE",
    **dict.fromkeys(("Utf8", "LargeUtf8", "Utf8View"), "VARCHAR"),
    **dict.fromkeys(("Binary", "LargeBinary", "BinaryView"), "BLOB"),
    "Time64(Microsecond)": "TIME",
    "Timestamp(Second,None)": "TIMESTAMP_S",
    "Timestamp(Millisecond,None)": "TIMESTAMP_MS",
    "Timestamp(Microsecond,None)": "TIMESTAMP",
    "Timestamp(Nanosecond,None)": "TIMESTAMP_NS",
}
"""DuckDB types, by the Arrow type names of arrow_cast without spaces."""

_PATTERNS: Final = (
    (re.compile(r"Decimal128\((\d+),(\d+)\)"), "DECIMAL({0},{1})"),
    (re.compile(r"FixedSizeBinary\(\d+\)"), "BLOB"),
    (re.compile(r"Timestamp\(\w+,Some\(\"[^\"]+\"\)\)"), "TIMESTAMPTZ"),
)
_LIST: Final = re.compile(r"(?:Large)?List\((.*)\)")
_VECTOR: Final = re.compile(r"FixedSizeList\((\d+),(.*)\)")
_BYTES: Final = re.compile(r"0[xX]((?:[0-9a-fA-F]{2})+)")
_OPENING: Final = ("(", "[", "{")
_CLOSING: Final = (")", "]", "}")


def spelled(text: str, names: Sequence[str]) -> str:
    """Convert SQL text on the named columns to DuckDB's dialect.

    Raises:
        InvalidInputError: A cast uses a type that Arrow or DuckDB does not support.
    """
    return with_casts(quote_names(text, names))


def quote_names(text: str, names: Sequence[str]) -> str:
    """Put double quotes around names in backticks, and around column names that are DuckDB keywords."""
    clashing = {name.lower() for name in names} & _reserved()
    if not clashing and "`" not in text:
        return text
    words = set(re.findall(r"\w+", text.lower()))
    clashing = {word for word in clashing if not words & _GRAMMAR_AFTER.get(word, frozenset())}

    def quote(match: re.Match[str]) -> str:
        if match["name"] is not None:
            return quoted(match["name"].replace("``", "`"))
        return f'"{match["word"]}"' if (match["word"] or "").lower() in clashing else match[0]

    return _QUOTED_OR_WORD.sub(quote, text)


def find_name(name: str, names: Sequence[str]) -> str | None:
    """Find a name in `names`: an exact match, otherwise the only match without regard to case. None if missing."""
    if name in names:
        return name
    folded = [candidate for candidate in names if candidate.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None


@cache
def _reserved() -> frozenset[str]:
    """Return the words that must be quoted as column names, except keywords of expressions."""
    sql = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
    return frozenset(word for (word,) in query(sql)) - _GRAMMAR


def with_casts(text: str) -> str:
    """Replace each arrow_cast by CAST, and each literal such as 0xff by bytes. DuckDB does not support these forms.

    Raises:
        InvalidInputError: The type is not supported by Arrow or DuckDB.
    """
    lower = text.lower()
    if _CAST not in lower and "0x" not in lower:
        return text
    words = tokens(text)
    calls = [i for i, word in enumerate(words[:-1]) if word.text.lower() == _CAST and words[i + 1].text == "("]
    edits = [edit for place in calls for edit in _edits(words, place)]
    literals = [(word, _BYTES.fullmatch(word.text)) for word in words if word.kind == "other"]
    edits += [(word.start, word.stop, f"unhex('{literal[1]}')") for word, literal in literals if literal is not None]
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def _edits(words: Sequence[SqlToken], place: int) -> list[tuple[int, int, str]]:
    """Return the edits (start, stop, new text) that convert the call at `place` to CAST, or [] for other forms."""
    depth, comma = 0, -1
    for i in range(place + 1, len(words)):
        mark = words[i].text if words[i].kind in ("mark", "other") else ""
        depth += (mark in _OPENING) - (mark in _CLOSING)
        if mark == "," and depth == 1:
            comma = i
        if depth == 0:
            break
    else:
        return []
    if comma < 0 or i != comma + 2 or words[comma + 1].kind != "text":
        return []
    type_ = duckdb_type_name(words[comma + 1].text[1:-1].replace("''", "'"))
    return [
        (words[place].start, words[place + 1].stop, "CAST("),
        (words[comma].start, words[comma + 1].stop, f" AS {type_}"),
    ]


def duckdb_type_name(name: str) -> str:
    """Return DuckDB's name of an Arrow type. Raises InvalidInputError if the type is not supported."""
    items, brackets = name.replace(" ", ""), ""
    while True:
        if (vector := _VECTOR.fullmatch(items)) is not None:
            items, brackets = vector[2], f"[{vector[1]}]{brackets}"
        elif (list_ := _LIST.fullmatch(items)) is not None:
            items, brackets = list_[1], f"[]{brackets}"
        else:
            break
    if items in _PLAIN:
        return _PLAIN[items] + brackets
    for pattern, form in _PATTERNS:
        match = pattern.fullmatch(items)
        if match is not None:
            return form.format(*match.groups()) + brackets
    expected = "a type that DuckDB has, such as 'Int32', 'Utf8' or 'FixedSizeList(8, Float32)'"
    raise InvalidInputError("type", where=_CAST, expected=expected, found=repr(items))
