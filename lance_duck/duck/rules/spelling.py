"""Spellings that DuckDB leaves to catalogs (`FROM 'x.lance'`, `AT (VERSION => n)`), rewritten as calls.

    FROM 'dir/x.lance'                    → FROM lance_scan('dir/x.lance') AS "x"
    FROM t [AS] a AT (VERSION => v)       → FROM lance_scan('t', version := (v)) AS "a"
    FROM t [AS] a AT (TIMESTAMP => time)  → FROM lance_scan('t', asof := (time)) AS "a"

The statement's tokens decide, never its mere text: strings, comments and quoted names stay what they are, and
everything outside of the rewritten places keeps its bytes. Where the tokens leave a doubt, nothing is rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lance_duck.duck.statement.tokens import Token, tokens_of

_MAYBE = re.compile(r"\.lance/?'|\bat\b.*=>", re.IGNORECASE | re.DOTALL)
_KEYS = {"version": "version", "timestamp": "asof"}
_CALLS_WITH_FROM = frozenset({"trim", "extract", "substring", "overlay", "position"})
_BEFORE_TABLE = frozenset({"from", "join", ",", "("})
_CLAUSES = (
    "where group order limit offset fetch join inner left right full outer cross natural semi anti asof positional on "
    "using having window qualify union except intersect select tablesample at pivot unpivot returning ) , ;"
)
_AFTER_TABLE = frozenset(_CLAUSES.split())


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


def rewrite(sql: str, is_table: Callable[[tuple[str, ...]], bool]) -> str:
    """Return the statement with `FROM 'path.lance'` and `AT (…)` of our tables spelled as `lance_scan`.

    Args:
        sql: One statement or several.
        is_table: Whether a (qualified) name is one of our tables.
    """
    if not _MAYBE.search(sql):
        return sql
    tokens = tokens_of(sql)
    edits: list[_Edit] = []
    skip_to = 0
    for i, token in enumerate(tokens):
        if i < skip_to:
            continue
        travel = _travel(tokens, i, is_table) if token.word == "at" else None
        if travel is not None:
            edit, skip_to = travel
            edits = [before for before in edits if before.end <= edit.start]
            edits.append(edit)
        elif token.path is not None and _is_from(tokens, i - 1):
            edits.append(
                _Edit(token.start, token.end, f"lance_scan({token.text}){_alias(tokens, i + 1, _stem(token.path))}")
            )
    for edit in reversed(edits):
        sql = sql[: edit.start] + edit.text + sql[edit.end :]
    return sql


def paths_in(sql: str) -> list[str]:
    """Return string constants that end in `.lance`, wherever they stand."""
    return [token.path for token in tokens_of(sql) if token.path is not None] if ".lance" in sql.lower() else []


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
    """Return first word of the statement when token i is not in parentheses."""
    depth = 0
    while i >= 0 and tokens[i].text != ";":
        depth += {")": 1, "(": -1}.get(tokens[i].text, 0)
        if depth < 0:
            return None
        i -= 1
    return tokens[i + 1].word


def _opener(tokens: Sequence[Token], i: int) -> int:
    """Return place of the parenthesis that token i is in, -1 for none."""
    depth = 0
    for at in range(i - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(tokens[at].text, 0)
        if depth < 0:
            return at
    return -1


def _alias(tokens: Sequence[Token], after: int, name: str) -> str:
    """Return ` AS "name"` unless what follows is an alias already."""
    if after < len(tokens) and tokens[after].text.lower() not in _AFTER_TABLE:
        return ""
    return " AS " + _quoted(name)


def _travel(tokens: Sequence[Token], at: int, is_table: Callable[[tuple[str, ...]], bool]) -> tuple[_Edit, int] | None:
    """Return the edit for an AT clause and the token after it; None when it is none of ours."""
    head = [token.text for token in tokens[at + 1 : at + 4]]
    if len(head) < 3 or head[0] != "(" or head[1].lower() not in _KEYS or head[2] != "=>":
        return None
    close = _closer(tokens, at + 1)
    found = _table_before(tokens, at)
    if close is None or found is None or close <= at + 4:
        return None
    first, last, alias = found
    parts = tuple(token.name or "" for token in tokens[first : last + 1 : 2])
    table = tokens[last].path or parts[-1]
    if tokens[last].path is None and (not is_table(parts) or (len(parts) == 1 and _is_shadowed(tokens, table))):
        return None
    value = tokens[at + 4].source[tokens[at + 4].start : tokens[close].start]
    call = f"lance_scan({_string(table)}, {_KEYS[head[1].lower()]} := ({value}))"
    name = _stem(table) if tokens[last].path is not None else table
    text = call + (" AS " + alias if alias else _alias(tokens, close + 1, name))
    return _Edit(tokens[first].start, tokens[close].end, text), close + 1


def _closer(tokens: Sequence[Token], opener: int) -> int | None:
    depth = 0
    for at in range(opener, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[at].text, 0)
        if depth == 0:
            return at
    return None


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
    """Return first token of the (qualified) name that ends at token `last`."""
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
    """Return whether a common table expression of the statement has the name."""
    followers = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return any(
        token.name is not None
        and token.name.lower() == table.lower()
        and then.word == "as"
        and last.text.lower() in _CTE
        for token, then, last in followers
    )


_CTE = frozenset({"(", "not", "materialized"})


def _stem(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].rpartition(".")[0]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
