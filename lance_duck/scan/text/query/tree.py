"""The query tree of a full-text search. Names are the same as in pylance (`lance.query`)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, StrEnum
from functools import cached_property
from typing import Any, ClassVar, Final

from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.scan.text.query.checks import (
    check_analyzer,
    check_text,
    checked_number,
    checked_whole,
    column_names,
    member,
    weights,
)

MOST_WEIGHT: Final = 1 << 20
"""Maximum column weight in a `CombinedFieldsQuery`, as in pylance."""

MOST_NESTED: Final = 128
"""Maximum nesting depth of queries. It is far above practical use, and far below the stack limit."""

MOST_QUERIES: Final = 4096
"""Maximum number of queries in a tree. An object that occurs twice is searched twice: `q = q & q` doubles the tree."""


class FullTextQueryType(Enum):
    """The kind of a query."""

    MATCH = "match"
    MATCH_PHRASE = "match_phrase"
    BOOST = "boost"
    MULTI_MATCH = "multi_match"
    COMBINED_FIELDS = "combined_fields"
    BOOLEAN = "boolean"
    PREFIX = "prefix"


class FullTextOperator(Enum):
    """Whether a row must contain all words of a query, or at least one."""

    AND = "AND"
    OR = "OR"


class DocumentGranularity(StrEnum):
    """Whether a document is a row, or an element of a row's list."""

    ROW = "row"
    LIST_ELEMENT = "list_element"


class Occur(Enum):
    """The role of a query in a `BooleanQuery`."""

    SHOULD = "SHOULD"
    MUST = "MUST"
    MUST_NOT = "MUST_NOT"


class FullTextQuery(ABC):
    """A full-text query. `a & b` matches rows that match both, `a | b` rows that match either. Scores are added."""

    _type: ClassVar[FullTextQueryType]

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return self._type

    @property
    @abstractmethod
    def columns_searched(self) -> tuple[str, ...]:
        """Columns that the query names, in order and without duplicates."""

    @property
    def parts(self) -> tuple[FullTextQuery, ...]:
        """Subqueries, or () for a word query."""
        return ()

    @cached_property
    def depth(self) -> int:
        """Nesting depth: 1 for a word query."""
        return 1 + max((part.depth for part in self.parts), default=0)

    @cached_property
    def size(self) -> int:
        """Number of queries in the tree."""
        return 1 + sum(part.size for part in self.parts)

    def __str__(self) -> str:
        arguments: Mapping[str, object] = vars(self)
        return f"{type(self).__name__} {arguments.get('query')!r} in {', '.join(self.columns_searched)}"

    def __and__(self, other: FullTextQuery) -> BooleanQuery:
        return BooleanQuery([(Occur.MUST, self), (Occur.MUST, other)])

    def __or__(self, other: FullTextQuery) -> BooleanQuery:
        return BooleanQuery([(Occur.SHOULD, self), (Occur.SHOULD, other)])


class _WordsOfColumn(FullTextQuery):
    query: str
    column: str
    document_granularity: DocumentGranularity | None
    analyzer: Mapping[str, Any] | None

    def __post_init__(self) -> None:
        where = type(self).__name__
        check_text("query", self.query, where)
        check_text("column", self.column, where)
        if self.document_granularity is not None:
            granularity = member(DocumentGranularity, "document_granularity", self.document_granularity)
            _set(self, "document_granularity", granularity)
        check_analyzer(self.analyzer, where)

    @property
    def columns_searched(self) -> tuple[str, ...]:
        return (self.column,)


class _WordsOfColumns(FullTextQuery):
    query: str
    columns: Sequence[str]
    boosts: Sequence[float] | None
    operator: FullTextOperator
    analyzer: Mapping[str, Any] | None

    def __post_init__(self) -> None:
        where = type(self).__name__
        check_text("query", self.query, where)
        check_analyzer(self.analyzer, where)
        columns = column_names(self.columns, where)
        _set(self, "columns", columns)
        _set(self, "operator", member(FullTextOperator, "operator", self.operator))
        if self.boosts is not None:
            _set(self, "boosts", weights(self.boosts, columns, where))

    @property
    def columns_searched(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.columns))


@dataclass(frozen=True)
class MatchQuery(_WordsOfColumn):
    """Matches rows that contain the query's words, or similar words.

    Attributes:
        query: The words. The column's analyser converts them to terms. A word that occurs twice counts twice.
        column: Dotted path of the column to search.
        boost: Factor by which scores are multiplied, at least 0.
        fuzziness: Maximum edit distance between a row's word and a query word. Edits are insertions, deletions and
            replacements of a character. None derives it from the word length in bytes: 0 up to 2 bytes, 1 up to 5,
            otherwise 2.
        max_expansions: Maximum total number of terms to which the words of a fuzzy query expand, in byte order.
        operator: AND requires all words in a row. OR requires at least one word.
        prefix_length: Number of characters at the start of a word that must match exactly.
        document_granularity: With ROW, each row is a document. With LIST_ELEMENT, each element of the column's lists is
            a document. Each matching element is then a row of the result, and column `_doc_index` contains its
            position. None uses the granularity of the index, or ROW without an index.
        analyzer: Parameters of the analyser, with the names of `create_scalar_index`. None uses the parameters of the
            index, or the defaults without an index.

    Raises:
        InvalidInputError: A number is out of range.
        WrongTypeError: A value has the wrong type.
    """

    _type = FullTextQueryType.MATCH

    query: str
    column: str
    _: KW_ONLY
    boost: float = 1.0
    fuzziness: int | None = 0
    max_expansions: int = 50
    operator: FullTextOperator = FullTextOperator.OR
    prefix_length: int = 0
    document_granularity: DocumentGranularity | None = None
    analyzer: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        usual = MatchQuery  # its attributes are the defaults, which are not checked for each query
        if self.boost is not usual.boost:
            _set(self, "boost", checked_number("boost", self.boost))
        if self.fuzziness is not None and self.fuzziness is not usual.fuzziness:
            _set(self, "fuzziness", checked_whole("fuzziness", self.fuzziness))
        if self.max_expansions is not usual.max_expansions:
            _set(self, "max_expansions", checked_whole("max_expansions", self.max_expansions))
        if self.operator is not usual.operator:
            _set(self, "operator", member(FullTextOperator, "operator", self.operator))
        if self.prefix_length is not usual.prefix_length:
            _set(self, "prefix_length", checked_whole("prefix_length", self.prefix_length))


@dataclass(frozen=True)
class PrefixQuery(_WordsOfColumn):
    """Matches rows that contain words with given prefixes: `PrefixQuery("duc", "body")` is `duc*`.

    pylance does not have this query. Prefixes are not stemmed. They are compared with the terms that the column's
    analyser extracts from a row. A row also matches if it contains the prefix as a whole word, as in `MatchQuery`.

    Attributes:
        query: Prefixes of words.
        column: Dotted path of the column to search.
        boost: Factor by which scores are multiplied, at least 0.
        max_expansions: Maximum total number of terms to which all prefixes expand, in byte order. None means no limit.
        operator: AND requires, for each prefix, a word in the row. OR requires a word for at least one prefix.
        document_granularity: See `MatchQuery`.
        analyzer: See `MatchQuery`.

    Raises:
        InvalidInputError, WrongTypeError: See `MatchQuery`.
    """

    _type = FullTextQueryType.PREFIX

    query: str
    column: str
    _: KW_ONLY
    boost: float = 1.0
    max_expansions: int | None = None
    operator: FullTextOperator = FullTextOperator.OR
    document_granularity: DocumentGranularity | None = None
    analyzer: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "boost", checked_number("boost", self.boost))
        if self.max_expansions is not None:
            _set(self, "max_expansions", checked_whole("max_expansions", self.max_expansions))
        _set(self, "operator", member(FullTextOperator, "operator", self.operator))


@dataclass(frozen=True)
class PhraseQuery(_WordsOfColumn):
    """Matches rows that contain the query's words in order.

    Attributes:
        query: The words. A word that the analyser removes matches any single word.
        column: Dotted path of the column to search.
        slop: Maximum number of additional words between two adjacent query words.
        document_granularity: See `MatchQuery`.
        analyzer: See `MatchQuery`.

    Raises:
        InvalidInputError, WrongTypeError: See `MatchQuery`.
    """

    _type = FullTextQueryType.MATCH_PHRASE

    query: str
    column: str
    _: KW_ONLY
    slop: int = 0
    document_granularity: DocumentGranularity | None = None
    analyzer: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "slop", checked_whole("slop", self.slop))


@dataclass(frozen=True)
class BoostQuery(FullTextQuery):
    """Matches the rows of `positive`. Rows that `negative` also matches get lower, possibly negative scores.

    Attributes:
        positive: Query that selects the rows.
        negative: Query whose matches get lower scores.
        negative_boost: Factor by which the score from `negative` is multiplied before it is subtracted.

    Raises:
        InvalidInputError, WrongTypeError: See `MatchQuery`.
    """

    _type = FullTextQueryType.BOOST

    positive: FullTextQuery
    negative: FullTextQuery
    _: KW_ONLY
    negative_boost: float = 0.5

    def __post_init__(self) -> None:
        _check_query("positive", self.positive)
        _check_query("negative", self.negative)
        _set(self, "negative_boost", checked_number("negative_boost", self.negative_boost, least=-math.inf))
        _check_size(self)

    def __str__(self) -> str:
        return f"BoostQuery ({self.positive}, less {self.negative_boost:g} times {self.negative})"

    @property
    def columns_searched(self) -> tuple[str, ...]:
        """Columns of both queries."""
        return tuple(dict.fromkeys((*self.positive.columns_searched, *self.negative.columns_searched)))

    @property
    def parts(self) -> tuple[FullTextQuery, ...]:
        """The positive and the negative query."""
        return self.positive, self.negative


@dataclass(frozen=True)
class MultiMatchQuery(_WordsOfColumns):
    """Matches rows that contain the query's words in any of several columns. The best column determines the score.

    Attributes:
        query: See `MatchQuery`.
        columns: Columns to search, each with separate statistics.
        boosts: Factor by which the scores of each column are multiplied. None means 1 for each.
        operator: AND requires all words in one column. OR requires at least one word.
        analyzer: See `MatchQuery`.

    Raises:
        InvalidInputError, WrongTypeError: See `MatchQuery`.
    """

    _type = FullTextQueryType.MULTI_MATCH

    query: str
    columns: Sequence[str]
    _: KW_ONLY
    boosts: Sequence[float] | None = None
    operator: FullTextOperator = FullTextOperator.OR
    analyzer: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def match_queries(self) -> tuple[MatchQuery, ...]:
        """One query for each column."""
        boosts = self.boosts or [1.0] * len(self.columns)
        return tuple(
            MatchQuery(self.query, column, boost=boost, operator=self.operator, analyzer=self.analyzer)
            for column, boost in zip(self.columns, boosts, strict=True)
        )


@dataclass(frozen=True)
class CombinedFieldsQuery(_WordsOfColumns):
    """Matches rows that contain the query's words in several columns, scored as one column (BM25F).

    Attributes:
        query: See `MatchQuery`.
        columns: Distinct columns to search. All must have the same analyser.
        boosts: Weight of a word in each column, from 1 to `MOST_WEIGHT`. None means 1 for each.
        operator: AND requires each word in at least one of the columns. OR requires at least one word.
        analyzer: See `MatchQuery`.

    Raises:
        InvalidInputError, WrongTypeError: See `MatchQuery`.
    """

    _type = FullTextQueryType.COMBINED_FIELDS

    query: str
    columns: Sequence[str]
    _: KW_ONLY
    boosts: Sequence[float] | None = None
    operator: FullTextOperator = FullTextOperator.OR
    analyzer: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        where = type(self).__name__
        for place, column in enumerate(self.columns):
            if column in self.columns[:place]:
                raise InvalidInputError("columns must be unique", where=where, found=f"{column!r} twice")
        for column, weight in zip(self.columns, self.boosts or (), strict=False):
            if not 1 <= weight <= MOST_WEIGHT:
                raise InvalidInputError(
                    f"boost for column {column!r}",
                    where=where,
                    expected=f"a finite value in [1, {MOST_WEIGHT}]",
                    found=weight,
                )


@dataclass(frozen=True)
class BooleanQuery(FullTextQuery):
    """Matches rows that match all MUST queries and no MUST_NOT query.

    Without a MUST query, a row must match at least one SHOULD query.

    Attributes:
        queries: Pairs of `Occur` and query. The scores of matching MUST and SHOULD queries are added.

    Raises:
        InvalidInputError: There is neither a MUST nor a SHOULD query.
        WrongTypeError: A value has the wrong type.
    """

    _type = FullTextQueryType.BOOLEAN

    queries: Sequence[tuple[Occur, FullTextQuery]]

    def __post_init__(self) -> None:
        if isinstance(self.queries, str | bytes) or not isinstance(self.queries, Iterable):
            raise WrongTypeError("queries", where="BooleanQuery", expected="pairs (Occur, query)", found=self.queries)
        pairs = []
        for pair in self.queries:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise WrongTypeError("queries", where="BooleanQuery", expected="pairs (Occur, query)", found=repr(pair))
            _check_query("queries", pair[1])
            pairs.append((member(Occur, "occur", pair[0]), pair[1]))
        _set(self, "queries", tuple(pairs))
        if all(occur is Occur.MUST_NOT for occur, _ in pairs):
            raise InvalidInputError(
                "boolean query must have at least one should/must query",
                where="BooleanQuery",
                found=f"{len(pairs)} of MUST_NOT" if pairs else "no query",
            )
        _check_size(self)

    def __str__(self) -> str:
        return f"BooleanQuery ({', '.join(f'{occur.value} {query}' for occur, query in self.queries)})"

    @property
    def columns_searched(self) -> tuple[str, ...]:
        """Columns of all queries."""
        return tuple(dict.fromkeys(name for _, query in self.queries for name in query.columns_searched))

    @property
    def parts(self) -> tuple[FullTextQuery, ...]:
        """The queries."""
        return tuple(query for _, query in self.queries)

    def of(self, occur: Occur) -> Iterator[FullTextQuery]:
        """Yield the queries with this role."""
        return (query for each, query in self.queries if each is occur)


def _set(query: FullTextQuery, name: str, value: object) -> None:
    object.__setattr__(query, name, value)


def _check_query(name: str, value: object) -> None:
    if not isinstance(value, FullTextQuery):
        raise no_query(name, value)


def no_query(name: str, value: object, where: str | None = None) -> WrongTypeError:
    """Return the error for a value that is not a query of this package. The value may be a pylance query."""
    kind = type(value)
    found = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    remedy = "build it of lance_duck.query" if kind.__name__ in _NAMES else None
    return WrongTypeError(name, where=where, expected="a full-text query", found=found, remedy=remedy)


def _check_size(query: FullTextQuery) -> None:
    if query.depth > MOST_NESTED:
        raise InvalidInputError(
            "the query is nested too deeply", expected=f"at most {MOST_NESTED} levels", found=query.depth
        )
    if query.size > MOST_QUERIES:
        raise InvalidInputError("the query has too many clauses", expected=f"at most {MOST_QUERIES}", found=query.size)


_KINDS: Final[Sequence[type[FullTextQuery]]] = (
    MatchQuery,
    PrefixQuery,
    PhraseQuery,
    BoostQuery,
    MultiMatchQuery,
    CombinedFieldsQuery,
    BooleanQuery,
)
_NAMES: Final = frozenset(kind.__name__ for kind in _KINDS)
