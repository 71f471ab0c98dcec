"""Rewrites syntax that only DuckDB catalogs support (`FROM 'x.lance'`, `AT (VERSION => n)`) to function calls.

    FROM 'dir/x.lance'                    → FROM lance_scan('dir/x.lance') AS "x"
    FROM t [AS] a AT (VERSION => 3)       → FROM lance_scan('t', version := 3) AS "a"
    FROM t [AS] a AT (VERSION => v)       → FROM lance_scan('t', version := coalesce((v)::VARCHAR, '')) AS "a"
    FROM t [AS] a AT (TIMESTAMP => time)  → FROM lance_scan('t', asof := coalesce((time)::VARCHAR, '')) AS "a"
    FROM lance.versions('t')              → FROM lance_versions('t', database := 'lance'), and
                                            likewise for the other history functions
    FROM lance_scan('t')                  → FROM lance_scan('"ns"."t"') if the name refers to a table of ns;
                                            likewise for all functions whose first argument is a table

Matching uses tokens, not the raw text. Strings, comments and quoted names stay unchanged, and so does all text outside
the rewritten ranges. If the tokens are ambiguous, nothing is rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lance_duck.duck.history.names import NAMES, PREFIX, may_be_called
from lance_duck.duck.statement.clauses import closing, stem
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import folded, literal, parts_of_name, quoted
from lance_duck.duck.statement.nearest_clause import is_nearest_clause
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import Token

_PATH: Final = re.compile(r"\.lance/?'", re.IGNORECASE)
_NAMED_CALL: Final = re.compile(rf"\b{PREFIX}\w+\"?\s*\(\s*'", re.IGNORECASE)
_AT: Final = re.compile(r"\bat\b", re.IGNORECASE)
_CONSTANT: Final = re.compile(r"\s*(?:\d+|'(?:[^']|'')+')\s*")
_QUERY: Final = re.compile(r"\(\s*(?:select|from|with|values)\b", re.IGNORECASE)
_CONSTANTS: Final = frozenset(["null", "true", "false", "now", "today", "current_timestamp", "current_date"])
_KEYS: Final = {"version": "version", "timestamp": "asof"}
_CALLS_WITH_FROM: Final = frozenset({"trim", "extract", "substring", "overlay", "position"})
_BEFORE_TABLE: Final = frozenset({"from", "join", "using", ",", "("})
_CLAUSES: Final = (
    "where group order limit offset fetch join inner left right full outer cross natural semi anti asof positional on "
    "using having window qualify union except intersect select tablesample at pivot unpivot returning ) , ;"
)
_AFTER_TABLE: Final = frozenset(_CLAUSES.split())
_CTE: Final = frozenset({"(", "not", "materialized"})


@dataclass(frozen=True)
class Spelling:
    """A table reference in a syntax that only DuckDB catalogs support.

    Attributes:
        edit: The call that replaces it.
        name: Parts of the name, which must refer to a Lance table. None for a path.
        is_version: Whether the reference specifies a version.
        database: Qualifier of a call, which must be a database of Lance tables.
        is_argument: Whether the name is a string argument of a function. It may have to be qualified.
        is_reference: Whether the name qualifies a column. The edit then removes the name's own qualifiers.
        value: The version, if a call does not accept it as an argument: a query that must run first, or a column.
    """

    edit: Edit
    name: tuple[str, ...] | None
    is_version: bool = False
    database: str | None = None
    is_argument: bool = False
    is_reference: bool = False
    value: str | None = None

    @property
    def asks(self) -> bool:
        """Whether a query must run first."""
        return self.value is not None and _QUERY.search(self.value) is not None

    def answered(self, text: str | None) -> Spelling:
        """Return the spelling with the query replaced by its result."""
        assert self.value is not None
        constant = "''" if text is None else literal(text)
        return replace(self, edit=replace(self.edit, text=self.edit.text.replace(self.value, constant, 1)), value=None)

    def qualified(self, table: str) -> Edit:
        """Return the call for a table with this qualified name."""
        assert self.name is not None
        if self.is_reference:
            return self.edit
        if self.is_argument:
            return replace(self.edit, text=literal(table))
        head = f"lance_scan({literal(self.name[-1])}"
        return replace(self.edit, text=f"lance_scan({literal(table)}" + self.edit.text.removeprefix(head))


def may_find(text: str) -> bool:
    """Return whether a text may contain this syntax. Strings and comments also count."""
    return (
        _PATH.search(text) is not None
        or ("=>" in text and _AT.search(text) is not None)
        or may_be_called(text)
        or _NAMED_CALL.search(text) is not None
    )


def find(statement: Statement) -> tuple[Spelling, ...]:
    """Find table references to rewrite in one or more statements."""
    if not may_find(statement.text):
        return ()
    tokens = statement.tokens
    spellings: list[Spelling] = []
    references: list[Spelling] = []
    skip_to = 0
    for i, token in enumerate(tokens):
        if i < skip_to:
            continue
        called = (_call(tokens, i) or _argument(tokens, i)) if token.text == "(" else None
        if called is not None:
            spellings.append(called)
            continue
        travel = _travel(tokens, i) if token.word == "at" else None
        if travel is not None:
            spelling, skip_to = travel
            spellings = [before for before in spellings if before.edit.end <= spelling.edit.start]
            spellings.append(spelling)
            references += _references(tokens, spelling)
        elif token.path is not None and _is_from(tokens, i - 1):
            call = f"lance_scan({token.text}){_alias(tokens, i + 1, stem(token.path))}"
            spellings.append(Spelling(Edit(token.start, token.end, call), None))
    taken = [each.edit for each in spellings]
    spellings += (each for each in references if not any(e.overlaps(each.edit.start, each.edit.end) for e in taken))
    return tuple(spellings)


def versions_in(text: str) -> tuple[Spelling, ...]:
    """Find only tables with `AT (…)`, and columns qualified by their names."""
    if not may_find(text):
        return ()
    spellings: tuple[Spelling, ...] = Statement.of(text).result("spelling", find)
    return tuple(each for each in spellings if each.is_version)


def _call(tokens: Sequence[Token], opener: int) -> Spelling | None:
    """Return the spelling of a database-qualified history function, given its opening parenthesis."""
    first = _name_start(tokens, opener - 1)
    close = closing(tokens, opener)
    if first is None or close is None or opener - first < 3:
        return None
    database, *schema, function = (tokens[i].name or "" for i in range(first, opener, 2))
    if [folded(name) for name in schema] not in ([], ["main"]) or folded(function) not in NAMES:
        return None
    arguments = tokens[opener].source[tokens[opener].end : tokens[close].start].strip()
    prefix = f"{arguments}\n, " if arguments else ""
    text = f"{PREFIX}{folded(function)}({prefix}database := {literal(database)})"
    return Spelling(Edit(tokens[first].start, tokens[close].end, text), None, database=database)


def _argument(tokens: Sequence[Token], opener: int) -> Spelling | None:
    """Return the spelling of a table in a string argument, given the opening parenthesis of the call."""
    function = folded(tokens[opener - 1].name or "") if opener > 0 else ""
    if not function.startswith(PREFIX) or opener + 2 >= len(tokens) or tokens[opener + 2].text not in (",", ")"):
        return None
    if _says_database(tokens, opener):
        return None
    table = tokens[opener + 1]
    name = parts_of_name(table.text[1:-1].replace("''", "'")) if table.text.startswith("'") else ()
    if not name or table.path is not None:
        return None
    return Spelling(Edit(table.start, table.end, table.text), name, is_argument=True)


def _says_database(tokens: Sequence[Token], opener: int) -> bool:
    """Return whether `database` is one of the named arguments of a call."""
    pairs = zip(tokens[opener : closing(tokens, opener)], tokens[opener + 1 :], strict=False)
    return any(folded(token.name or "") == "database" and then.text in (":", ":=", "=>", "=") for token, then in pairs)


def _is_from(tokens: Sequence[Token], i: int) -> bool:
    """Return whether the token is a FROM or JOIN after which a table is read."""
    if i < 0 or tokens[i].word not in ("from", "join"):
        return False
    if tokens[i].word == "join":
        return True
    before = tokens[i - 1].word if i else None
    if before in ("distinct", "delete") or _statement(tokens, i) == "copy":
        return False
    opener = _opener(tokens, i)
    return not (opener > 0 and tokens[opener - 1].word in _CALLS_WITH_FROM)


def _statement(tokens: Sequence[Token], i: int) -> str | None:
    """Return the first word of the statement if token i is outside parentheses."""
    depth = 0
    while i >= 0 and tokens[i].text != ";":
        depth += {")": 1, "(": -1}.get(tokens[i].text, 0)
        if depth < 0:
            return None
        i -= 1
    return tokens[i + 1].word


def _opener(tokens: Sequence[Token], i: int) -> int:
    """Return the index of the innermost parenthesis around token i, or -1."""
    depth = 0
    for at in range(i - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(tokens[at].text, 0)
        if depth < 0:
            return at
    return -1


def _alias(tokens: Sequence[Token], after: int, name: str) -> str:
    """Return ` AS "name"`, or an empty string if an alias follows."""
    ends = after >= len(tokens) or tokens[after].text.lower() in _AFTER_TABLE
    if not ends and not is_nearest_clause(tokens, after):
        return ""
    return " AS " + quoted(name)


def _travel(tokens: Sequence[Token], at: int) -> tuple[Spelling, int] | None:
    """Return the spelling of a table with AT, and the token after the clause. Returns None without an AT clause."""
    head = [token.text for token in tokens[at + 1 : at + 4]]
    if len(head) < 3 or head[0] != "(" or head[1].lower() not in _KEYS or head[2] != "=>":
        return None
    close = closing(tokens, at + 1)
    before = _table_before(tokens, at)
    if close is None or before is None or close <= at + 4:
        return None
    first, last, alias = before
    if tokens[first - 1].word == "from" and tokens[first - 2].word == "delete":
        return None  # a change always applies to the newest version
    path = tokens[last].path
    parts = None if path is not None else tuple(token.name or "" for token in tokens[first : last + 1 : 2])
    table = path if parts is None else parts[-1]
    if table is None or (parts is not None and len(parts) == 1 and _is_shadowed(tokens, table)):
        return None
    value = tokens[at + 4].source[tokens[at + 4].start : tokens[close].start]
    key = _KEYS[head[1].lower()]
    is_constant = key == "version" and _CONSTANT.fullmatch(value) is not None
    # lance_scan treats NULL as "not given" and rejects empty strings.
    chosen = value.strip() if is_constant else f"coalesce(({value})::VARCHAR, '')"
    call = f"lance_scan({literal(table)}, {key} := {chosen})"
    name = stem(table) if parts is None else table
    text = call + (" AS " + alias if alias else _alias(tokens, close + 1, name))
    edit = Edit(tokens[first].start, tokens[close].end, text)
    asked = value if _QUERY.search(value) or _is_column(tokens[at + 4 : close]) else None
    return Spelling(edit, parts, is_version=True, value=asked), close + 1


def _is_column(tokens: Sequence[Token]) -> bool:
    """Return whether tokens are certainly a (qualified) column name."""
    names = [token.name is not None for token in tokens]
    if len(tokens) == 1:
        return names[0] and folded(tokens[0].name or "") not in _CONSTANTS
    return len(tokens) in (3, 5) and all(names[::2]) and all(token.text == "." for token in tokens[1::2])


def _references(tokens: Sequence[Token], spelling: Spelling) -> list[Spelling]:
    """Return the columns that are qualified by the full name of a replaced table."""
    parts = tuple(map(folded, spelling.name or ()))
    size = 2 * len(parts) - 1
    if len(parts) < 2 or not spelling.edit.text.endswith(f" AS {quoted((spelling.name or ())[-1])}"):
        return []
    references = []
    for at in range(len(tokens) - size - 1):
        named = tokens[at : at + size : 2]
        dots = tokens[at + 1 : at + size + 1 : 2]
        if tokens[at - 1].text == "." or any(token.text != "." for token in dots):
            continue
        if tuple(folded(token.name or "") for token in named) == parts:
            edit = Edit(tokens[at].start, named[-1].start, "")
            references.append(Spelling(edit, spelling.name, is_version=True, is_reference=True))
    return references


def _table_before(tokens: Sequence[Token], at: int) -> tuple[int, int, str | None] | None:
    """Return the first and last token of the table name that ends before token `at`, and its alias."""
    last = at - 1
    first = _name_start(tokens, last)
    if first is None:
        return None
    alias = None
    if first > 0 and tokens[first - 1].text.lower() not in _BEFORE_TABLE:
        alias = tokens[last].text
        last = first - (2 if tokens[first - 1].word == "as" else 1)
        first = _name_start(tokens, last)
    if first is None or first == 0 or tokens[first - 1].text.lower() not in _BEFORE_TABLE:
        return None
    return first, last, alias


def _name_start(tokens: Sequence[Token], last: int) -> int | None:
    """Return the first token of the (qualified) name that ends at token `last`."""
    if last < 0:
        return None
    if tokens[last].path is not None:
        return last
    first = last
    while tokens[first].name is not None:
        if first < 2 or tokens[first - 1].text != ".":
            return first
        first -= 2
    return None


def _is_shadowed(tokens: Sequence[Token], table: str) -> bool:
    """Return whether a common table expression of the statement has this name."""
    followers = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return any(
        token.name is not None
        and token.name.lower() == table.lower()
        and then.word == "as"
        and last.text.lower() in _CTE
        for token, then, last in followers
    )
