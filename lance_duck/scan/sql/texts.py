"""SQL substring conditions: contains, LIKE and regular expressions on a column, upper(column) or lower(column)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_duck.arrow.types import is_text
from lance_duck.scan.evaluator.types import Parameters
from lance_duck.scan.predicate.leaves import implied_by_like
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
_LIKE: Final = SqlToken("keyword", "like")
_OPENING: Final = SqlToken("mark", "(")


def implied_by_tokens(
    tokens: list[SqlToken], schema: pa.Schema, parameters: Parameters
) -> tuple[Predicate | None, Predicate | None]:
    """Return the prefix predicate and the trigram predicate that a condition implies. Each may be None.

    Args:
        tokens: The condition.
        schema: Columns that the condition may read.
        parameters: Values bound to this condition.
    """
    try:
        return _TextParser(tokens, schema, parameters).implied()
    except NotSimpleError:
        return None, None


class _TextParser(Parser):
    """Parser of one condition on a string."""

    def implied(self) -> tuple[Predicate | None, Predicate | None]:
        """See `implied_by_tokens`."""
        how = _CALLS.get(self._called())
        return self._operator() if how is None else self._call(how)

    def _call(self, how: str) -> tuple[None, Predicate | None]:
        self._at += 2
        path, _, any_case = self._subject()
        self._needs("mark", ",")
        pattern = self._text()
        options = self._text() if how == REGEX and self._takes("mark", ",") else ""
        self._needs("mark", ")")
        self._needs("end", "")
        if _LITERAL_OPTION in options:
            how = CONTAINS
        return None, implied_by_text(path, how, pattern, any_case=any_case or "i" in options)

    def _operator(self) -> tuple[Predicate | None, Predicate | None]:
        path, type_, in_case = self._subject()
        has_prefix = not in_case and self._peek() == _LIKE and self._peek(1).kind == "text"
        how, any_case = self._comparison()
        pattern = self._text()
        escape = self._text() if how == LIKE and self._takes("keyword", "escape") else ""
        self._needs("end", "")
        trigrams = implied_by_text(path, how, pattern, escape=escape, any_case=any_case or in_case)
        return implied_by_like(path, pattern, type_) if has_prefix and not escape else None, trigrams

    def _called(self) -> str:
        """Return the name of the function that is called next, or "" without a call."""
        return self._peek().text.lower() if self._peek().kind == "word" and self._peek(1) == _OPENING else ""

    def _subject(self) -> tuple[Path, pa.DataType, bool]:
        """Return the column that is compared, its type, and whether the condition converts its case."""
        in_case = self._called() in _CASES
        self._at += 2 * in_case
        path, type_ = self._path()
        if in_case:
            self._needs("mark", ")")
        if not is_text(type_):
            raise NotSimpleError
        return path, type_, in_case

    def _comparison(self) -> tuple[str, bool]:
        """Return the kind of comparison, and whether it ignores case."""
        for length in (3, 2, 1):
            words = tuple(self._peek(i).text.lower() for i in range(length))
            if words in _OPERATORS:
                self._at += length
                return _OPERATORS[words]
        raise NotSimpleError

    def _text(self) -> str:
        literal = self._plain_literal()
        if literal.kind not in ("text", "value") or not isinstance(literal.value, str):
            raise NotSimpleError
        return literal.value
