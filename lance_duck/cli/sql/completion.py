"""SQL completion: keywords, functions, tables and columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

import lance_duck as ld
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import folded, quoted

_LAST_WORD: Final = re.compile(r'(?:(?P<table>\w+|"[^"]*")\.)?(?P<word>\w*)$')
_PLAIN: Final = re.compile(r"[a-z_]\w*")
_TABLE_FOLLOWS: Final = frozenset({"from", "join", "into", "update", "table", "describe", "summarize"})


@dataclass(frozen=True)
class CompletionWords:
    """Vocabulary for completing a statement.

    Attributes:
        columns: Column names, by table name.
        functions: Function names.
        keywords: SQL keywords, in lower case.
        reserved: Keywords that must be quoted when used as a name.
    """

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    functions: Sequence[str] = ()
    keywords: Sequence[str] = ()
    reserved: frozenset[str] = frozenset()

    @classmethod
    def of(cls, connection: ld.Connection) -> CompletionWords:
        """Read the vocabulary of a connection."""
        columns: dict[str, list[str]] = {}
        names = connection.execute("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal").fetchall()
        for table, column in names:
            columns.setdefault(table, []).append(column)
        functions = connection.execute(
            r"SELECT DISTINCT function_name FROM duckdb_functions() WHERE regexp_full_match(function_name, '[a-z]\w+')"
        ).fetchall()
        keywords = connection.execute("SELECT keyword_name, keyword_category FROM duckdb_keywords()").fetchall()
        reserved = frozenset(word for word, category in keywords if category == "reserved")
        return cls(columns, sorted(row[0] for row in functions), sorted({row[0] for row in keywords}), reserved)

    def spelled(self, name: str) -> str:
        """Return a name in SQL syntax, quoted if necessary."""
        return name if _PLAIN.fullmatch(name) and name not in self.reserved else quoted(name)

    def columns_of(self, tables: Iterable[str]) -> list[str]:
        """Return the distinct column names of tables."""
        names = {folded(table) for table in tables}
        return list(dict.fromkeys(c for table, cs in self.columns.items() if folded(table) in names for c in cs))


def candidates(vocabulary: CompletionWords, before: str, after: str = "") -> tuple[str, list[str]]:
    """Return completions at a position in a statement.

    Args:
        vocabulary: Words to choose from.
        before: The text before the position.
        after: The text after the position.

    Returns:
        The typed part of the word, and the words that begin with it, likely ones first.
    """
    last = _LAST_WORD.search(before)
    assert last is not None  # the pattern also matches the empty string
    word, table = last["word"], last["table"]
    named = _tables_named(vocabulary, before[: last.start()] + " " + after)
    previous = Clauses.of(before[: last.start()])
    spelled = [vocabulary.spelled(name) for name in vocabulary.columns]
    if table is not None:
        name = folded(table.strip('"'))
        words = _spelled_columns(vocabulary, [named.get(name, name)])
    elif previous.word(len(previous) - 1) in _TABLE_FOLLOWS:
        words = [*spelled, *(name for name in vocabulary.functions if name.startswith("lance_"))]
    else:
        is_upper = word.isupper()
        words = _spelled_columns(vocabulary, named.values() or vocabulary.columns)
        words += [keyword.upper() if is_upper else keyword for keyword in vocabulary.keywords]
        words += [*vocabulary.functions, *spelled]
    begun = folded(word)
    return word, [each for each in dict.fromkeys(words) if folded(each).lstrip('"').startswith(begun)]


class SqlCompleter(Completer):
    """Completer of statements and of shell commands.

    Args:
        vocabulary: Returns the current SQL vocabulary.
        commands: Dot commands of the shell, with their dot.
    """

    def __init__(self, vocabulary: Callable[[], CompletionWords], commands: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions at the cursor."""
        before = document.text_before_cursor
        if before.startswith("."):
            matching = [command for command in self._commands if command.startswith(before)]
            yield from (Completion(command, -len(before)) for command in matching)
            return
        word, words = candidates(self._vocabulary(), before, document.text_after_cursor)
        yield from (Completion(each, -len(word)) for each in words)


def _spelled_columns(vocabulary: CompletionWords, tables: Iterable[str]) -> list[str]:
    return [vocabulary.spelled(column) for column in vocabulary.columns_of(tables)]


def _tables_named(vocabulary: CompletionWords, sql: str) -> dict[str, str]:
    """Return the tables in a statement, by alias or name."""
    clauses = Clauses.of(sql)
    tables = {}
    for place in range(len(clauses)):
        if clauses.word(place) in _TABLE_FOLLOWS and (name := TableName.at(clauses, place + 1)) is not None:
            alias, _ = name.alias(clauses, *vocabulary.reserved, "set")
            tables[folded(alias)] = name.name
    return tables
