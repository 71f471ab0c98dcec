"""Converts all forms of a full-text query to a query tree.

"words"                                   words in all columns with an index, otherwise in the only text column
'"two words"'                             a phrase in the same columns
{"query": …, "columns": […], "analyzer"}  words, a phrase or a query, in these columns
{"match": {…}}                            JSON form; also prefix, phrase, boost, multi_match, combined_fields, boolean
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from lance_duck.arguments import refuse_unknown
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.scan.nearest.options import ARGUMENTS as NEAREST_ARGUMENTS
from lance_duck.scan.nearest.options import DEFAULT_K
from lance_duck.scan.text.columns import text_columns
from lance_duck.scan.text.query.checks import column_names
from lance_duck.scan.text.query.tree import (
    MOST_NESTED,
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    DocumentGranularity,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    PrefixQuery,
    no_query,
)
from lance_duck.scan.text.route import indexed_text_columns
from lance_duck.snapshot import Snapshot

_WHERE: Final = "full_text_query"
_NAMES: Final = ("query", "columns", "analyzer")
_SEVERAL: Final = ("terms", "query", "columns", "boosts", "operator", "analyzer")
_WORDS: Final[Mapping[str, type[MatchQuery] | type[PrefixQuery] | type[PhraseQuery]]] = {
    "match": MatchQuery,
    "prefix": PrefixQuery,
    "phrase": PhraseQuery,
}


def full_text_query(request: Any, snapshot: Snapshot) -> FullTextQuery:
    """Convert any form of a full-text query to a query tree.

    Args:
        request: A string, a dict, or a query.
        snapshot: The table version. Its columns are searched if the request does not name any.

    Raises:
        InvalidInputError: The request is not a valid query, or there is no column to search.
        WrongTypeError: The request does not have one of these types.
    """
    if isinstance(request, FullTextQuery):
        return request
    if isinstance(request, str):
        searched = _columns(snapshot)
        return _over(request, list(searched), None, *searched.values())
    if not isinstance(request, Mapping):
        raise no_query(_WHERE, request, "scan")
    if any(name in request for name in _FORMS) and "query" not in request:
        return query_of_json(request)
    refuse_unknown(request, _NAMES, _WHERE, "key")
    if "query" not in request:
        raise WrongTypeError("no 'query'", where=_WHERE, remedy='name it: {"query": …}')
    query, columns = request["query"], request.get("columns")
    if isinstance(query, FullTextQuery):
        return query
    if isinstance(query, Mapping):
        return query_of_json(query)
    if not isinstance(query, str):
        raise no_query("query", query, _WHERE)
    if columns is None:
        searched = _columns(snapshot)
        return _over(query, list(searched), request.get("analyzer"), *searched.values())
    return _over(query, column_names(columns, _WHERE), request.get("analyzer"))


def words_in(text: str, column: str) -> FullTextQuery:
    """Return the query for words, or for a phrase in double quotes, in a column."""
    return _over(text, [column], None)


def query_of_text(text: str, column: str) -> FullTextQuery:
    """Parse a query string.

    Args:
        text: Words, or a phrase in double quotes. A string that begins with a brace is the JSON form of a query.
        column: Column to search. In the JSON form, it applies to each match, prefix or phrase without a column.

    Raises:
        InvalidInputError, WrongTypeError: The text has none of these forms.
    """
    if not text.lstrip().startswith("{"):
        return _over(text, [column], None)
    try:
        form = json.loads(text)
    except (ValueError, RecursionError) as error:
        remedy = 'words that begin with a brace go into the form, too: {"match": {"terms": "…"}}'
        raise InvalidInputError(
            "query", where=_WHERE, expected="the JSON form of a query", found=text[:40], remedy=remedy
        ) from error
    return query_of_json(_with_column(form, column, 1))


def text_search_arguments(
    q: str | Mapping[str, Any] | FullTextQuery, k: int | None, column: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the scan arguments with which `LanceDataset.search` searches for words.

    Args:
        q: The words, or a query.
        k: Maximum number of rows. A smaller `limit` in the options takes precedence. Default: `limit`, or 10.
        column: Column to search. Default: the columns that `full_text_query` searches.
        options: Arguments of a scan.

    Raises:
        InvalidInputError: An option applies only to vector searches, or both the query and `column` name columns.
    """
    vector_options = sorted(NEAREST_ARGUMENTS & options.keys())
    if vector_options:
        raise InvalidInputError(f"{vector_options[0]} is an option of vector search", where="search")
    if options.get("full_text_query") is not None:
        raise InvalidInputError("full_text_query", where="search", expected="a query vector with it", found="words")
    if column is not None and not isinstance(q, str):
        raise InvalidInputError(
            "column", where="search", expected="None, because the query names its columns", found=column
        )
    request = q if column is None else {"query": q, "columns": [column]}
    if k is not None and (isinstance(k, bool) or not hasattr(k, "__index__") or k.__index__() < 1):
        raise InvalidInputError("k", where="search", expected="a whole number, 1 or more", found=repr(k))
    limit = options.get("limit")
    most = k if limit is None else limit if k is None else min(k, limit)
    return {**options, "full_text_query": request, "limit": DEFAULT_K if most is None else most}


def query_of_json(form: Mapping[str, Any], depth: int = 1) -> FullTextQuery:
    """Parse a query in JSON form. It is a dict with one key, which is the kind of query.

    Raises:
        InvalidInputError, WrongTypeError: The dict is not a valid form.
    """
    if depth > MOST_NESTED:
        raise InvalidInputError(
            "the query is nested too deeply", where=_WHERE, expected=f"at most {MOST_NESTED} levels"
        )
    if not isinstance(form, Mapping) or len(form) != 1:
        found = repr(list(form)) if isinstance(form, Mapping) else type(form).__name__
        raise WrongTypeError("query", where=_WHERE, expected=f"a dict of one of {', '.join(_FORMS)}", found=found)
    ((kind, value),) = form.items()
    refuse_unknown([kind], _FORMS, _WHERE, "kind of query")
    if not isinstance(value, Mapping):
        raise WrongTypeError(str(kind), where=_WHERE, expected="a dict", found=type(value).__name__)
    if kind in _WORDS:
        return _words(str(kind), value)
    return _FORMS[kind](value, depth + 1)


def _over(
    text: str,
    columns: Sequence[str],
    analyzer: Mapping[str, Any] | None,
    granularity: DocumentGranularity | None = None,
    *_: DocumentGranularity | None,
) -> FullTextQuery:
    """Parse words, or a phrase in double quotes, as a query on columns.

    The granularity applies only to a single column. For several columns, documents are rows.
    """
    is_phrase = len(text) > 1 and text.startswith('"') and text.endswith('"')
    if len(columns) == 1:
        kind = PhraseQuery if is_phrase else MatchQuery
        words = text[1:-1] if is_phrase else text
        return kind(words, columns[0], document_granularity=granularity, analyzer=analyzer)
    if is_phrase:
        raise InvalidInputError(
            "the column must be specified in the query",
            where=_WHERE,
            found=f"a phrase over {', '.join(columns)}",
            remedy='name one: {"query": …, "columns": […]}',
        )
    return MultiMatchQuery(text, columns, analyzer=analyzer)


def _columns(snapshot: Snapshot) -> Mapping[str, DocumentGranularity | None]:
    """Return the columns to search for a query without columns, and the granularity of their documents."""
    indexed = indexed_text_columns(snapshot)
    if indexed:
        return indexed
    candidates = text_columns(snapshot.schema)
    if len(candidates) != 1:
        raise InvalidInputError(
            "Cannot perform full text search unless an INVERTED index has been created on at least one column",
            where=_WHERE,
            expected="an index, or a table with one string column",
            found=", ".join(candidates) or "no string column",
            remedy='name one: search(…, column="…"), or create an index: create_scalar_index("…", "INVERTED")',
        )
    return dict.fromkeys(candidates)


def _words(kind: str, value: Mapping[str, Any]) -> FullTextQuery:
    """Parse a word query. In the JSON form, the key of its text is "terms"."""
    arguments = _with_terms(value)
    names = [each.name for each in fields(_WORDS[kind]) if each.name != "query"]
    refuse_unknown(arguments, ["terms", *names], kind)
    for name in ("terms", "column"):
        if name not in arguments:
            raise WrongTypeError(f"{name!r} is missing", where=kind)
    text, column = arguments.pop("terms"), arguments.pop("column")
    return _WORDS[kind](text, column, **arguments)


def _with_column(form: Any, column: str, depth: int) -> Any:
    """Add a column to the word queries of a JSON form. Parts that are invalid or nested too deeply are unchanged."""
    if depth > 2 * MOST_NESTED:
        return form
    if isinstance(form, list):
        return [_with_column(each, column, depth + 1) for each in form]
    if not isinstance(form, dict):
        return form
    return {
        name: {"column": column, **value}
        if name in _WORDS and isinstance(value, dict)
        else _with_column(value, column, depth + 1)
        for name, value in form.items()
    }


def _with_terms(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a word query. The key of its text may also be "query"."""
    arguments = {str(name): each for name, each in value.items()}
    if "terms" not in arguments and "query" in arguments:
        arguments["terms"] = arguments.pop("query")
    return arguments


def _boost(value: Mapping[str, Any], depth: int) -> FullTextQuery:
    refuse_unknown(value, ["positive", "negative", "negative_boost"], "boost")
    positive, negative = (query_of_json(_needed(value, name, "boost"), depth) for name in ("positive", "negative"))
    boost = value.get("negative_boost")
    return BoostQuery(positive, negative, negative_boost=0.5 if boost is None else boost)


def _multi_match(value: Mapping[str, Any], depth: int) -> FullTextQuery:
    refuse_unknown(value, ["match_queries", *_SEVERAL], "multi_match")
    if "match_queries" not in value:
        return _several(MultiMatchQuery, value)
    queries = []
    for each in _listed(value["match_queries"], "match_queries"):
        is_match = isinstance(each, Mapping) and len(each) == 1 and "match" in each
        query = _words("match", each["match"] if is_match else each)
        assert isinstance(query, MatchQuery)
        queries.append(query)
    if not queries:
        raise InvalidInputError("Cannot create MultiMatchQuery with no columns", where=_WHERE)
    first = queries[0]
    if any((q.query, q.operator, q.analyzer) != (first.query, first.operator, first.analyzer) for q in queries):
        raise InvalidInputError("match_queries", where="multi_match", expected="the same words in each")
    return MultiMatchQuery(
        first.query,
        [query.column for query in queries],
        boosts=[query.boost for query in queries],
        operator=first.operator,
        analyzer=first.analyzer,
    )


def _combined_fields(value: Mapping[str, Any], depth: int) -> FullTextQuery:
    refuse_unknown(value, _SEVERAL, "combined_fields")
    return _several(CombinedFieldsQuery, value)


def _several(
    kind: type[MultiMatchQuery] | type[CombinedFieldsQuery], value: Mapping[str, Any]
) -> MultiMatchQuery | CombinedFieldsQuery:
    where = kind.__name__
    arguments = _with_terms(value)
    options = {name: each for name, each in arguments.items() if name not in ("terms", "columns")}
    return kind(_needed(arguments, "terms", where), _needed(arguments, "columns", where), **options)


def _boolean(value: Mapping[str, Any], depth: int) -> FullTextQuery:
    refuse_unknown(value, ["must", "should", "must_not"], "boolean")
    occurs = (("must", Occur.MUST), ("should", Occur.SHOULD), ("must_not", Occur.MUST_NOT))
    return BooleanQuery(
        [
            (occur, query_of_json(each, depth))
            for name, occur in occurs
            for each in (_listed(value[name], name) if value.get(name) is not None else ())
        ]
    )


def _needed(value: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in value:
        raise WrongTypeError(f"{name!r} is missing", where=where)
    return value[name]


def _listed(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise WrongTypeError(name, where=_WHERE, expected="a list", found=type(value).__name__)
    return value


_FORMS: Final[Mapping[str, Callable[[Mapping[str, Any], int], FullTextQuery]]] = {
    "match": lambda value, _: _words("match", value),
    "prefix": lambda value, _: _words("prefix", value),
    "phrase": lambda value, _: _words("phrase", value),
    "boost": _boost,
    "multi_match": _multi_match,
    "combined_fields": _combined_fields,
    "boolean": _boolean,
}
