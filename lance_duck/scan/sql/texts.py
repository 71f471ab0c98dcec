"""Conditions of SQL on parts of texts: contains, LIKE, regular expressions; also of a column in upper or lower case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.arrow.types import is_text
from lance_duck.scan.evaluator.types import Parameters
from lance_duck.scan.predicate.texts import CONTAINS, GLOB, LIKE, REGEX, TOKENS, implied_by_text
from lance_duck.scan.predicate.tree import Path, Predicate
from lance_duck.scan.sql.literals import NotSimpleError
from lance_duck.scan.sql.parser import Parser
from lance_duck.scan.sql.tokens import SqlToken

_CALLS: Final = {
    **dict.fromkeys(("contains", "starts_with", "prefix", "ends_with", "suffix"), CONTAINS),
    "contains_tokens": TOKENS,
    **dict.fromkeys(("regexp_matches", "regexp_match", "regexp_like", "regexp_full_match"), REGEX),
}
_CASES: Final = ("lower", "upper", "lcase", "ucase")
_OPERATORS: Final = {
    ("like",): (LIKE, False),
    ("ilike",): (LIKE, True),
    ("glob",): (GLOB, False),
    ("similar", "to"): (REGEX, False),
    ("~", "~", "~"): (GLOB, False),
    ("~", "~"): (LIKE, False),
    ("~", "~", "*"): (LIKE, True),
    ("~",): (REGEX, False),
    ("^@",): (CONTAINS, False),
    ("=",): (CONTAINS, False),
}
_LITERAL_OPTION: Final = "l"


def implied_by_tokens(tokens: Sequence[SqlToken], schema: pa.Schema, parameters: Parameters) -> Predicate | None:
    """Return the predicate on trigrams that a condition implies; None if it implies none.

    Args:
        tokens: The condition.
        schema: Columns that the condition may read.
        parameters: Values bound to the condition alone.
    """
    try:
        return _TextReader(tokens, schema, parameters).condition()
    except NotSimpleError:
        return None


class _TextReader:
    def __init__(self, tokens: Sequence[SqlToken], schema: pa.Schema, parameters: Parameters) -> None:
        self._tokens = tokens
        self._schema = schema
        self._parameters = parameters
        self._values: Iterator[Any] = iter(parameters if isinstance(parameters, Sequence) else ())

    def condition(self) -> Predicate | None:
        tokens = self._tokens
        how = _CALLS.get(tokens[0].text.lower()) if tokens[0].kind == "word" else None
        if how is not None and _is_call(tokens):
            return self._call(how, [self._constant_or_tokens(part) for part in _arguments(tokens[2:-1])])
        return self._operator()

    def _call(self, how: str, arguments: list[Any]) -> Predicate | None:
        if len(arguments) not in ((2, 3) if how == REGEX else (2,)):
            raise NotSimpleError
        subject, pattern, *rest = arguments
        options = "".join(rest)
        path, any_case = self._subject(subject)
        if not isinstance(pattern, str):
            raise NotSimpleError
        if _LITERAL_OPTION in options:
            how = CONTAINS
        return implied_by_text(path, how, pattern, any_case=any_case or "i" in options)

    def _operator(self) -> Predicate | None:
        tokens, escape = list(self._tokens), ""
        constants = tokens[-1:]
        if len(tokens) > 2 and tokens[-2] == SqlToken("keyword", "escape"):
            constants = [tokens[-3], tokens[-1]]
            tokens = tokens[:-2]
        words = tuple(token.text.lower() for token in tokens[-4:-1])
        for length in (3, 2, 1):
            how, any_case = _OPERATORS.get(words[-length:], ("", False)) if len(words) >= length else ("", False)
            if how:
                pattern, *rest = [self._constant_or_tokens([token]) for token in constants]
                escape = rest[0] if rest else ""
                path, in_case = self._subject(tokens[: -1 - length])
                if not isinstance(pattern, str) or not isinstance(escape, str) or (escape and how != LIKE):
                    raise NotSimpleError
                return implied_by_text(path, how, pattern, escape=escape, any_case=any_case or in_case)
        raise NotSimpleError

    def _subject(self, tokens: Any) -> tuple[Path, bool]:
        """Return the column that is compared, and whether it is in upper or lower case."""
        if isinstance(tokens, str) or not tokens:
            raise NotSimpleError
        in_case = tokens[0].kind == "word" and tokens[0].text.lower() in _CASES and _is_call(tokens)
        path, type_ = Parser(list(tokens[2:-1] if in_case else tokens), self._schema, None).column()
        if not is_text(type_):
            raise NotSimpleError
        return path, in_case

    def _constant_or_tokens(self, tokens: Sequence[SqlToken]) -> Any:
        """Return a constant text; other tokens unchanged."""
        if len(tokens) != 1 or tokens[0].kind not in ("text", "param"):
            return tokens
        token = tokens[0]
        if token.kind == "text":
            return token.text[1:-1].replace("''", "'")
        value = (
            self._parameters.get(token.text[1:]) if isinstance(self._parameters, Mapping) else next(self._values, None)
        )
        if not isinstance(value, str):
            raise NotSimpleError
        return value


def _is_call(tokens: Sequence[SqlToken]) -> bool:
    """Return whether tokens are a word and brackets around all the rest."""
    return len(tokens) > 3 and tokens[1].text == "(" and tokens[-1].text == ")" and _closes(tokens[1:])


def _closes(tokens: Sequence[SqlToken]) -> bool:
    """Return whether the bracket that begins tokens is closed by the last of them."""
    depth = 0
    for place, token in enumerate(tokens):
        if token.kind == "mark":
            depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return place == len(tokens) - 1
    return False


def _arguments(tokens: Sequence[SqlToken]) -> Sequence[Sequence[SqlToken]]:
    """Return the arguments of a call, cut at its commas."""
    parts: list[list[SqlToken]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "mark":
            depth += (token.text in "([") - (token.text in ")]")
        if token == SqlToken("mark", ",") and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
