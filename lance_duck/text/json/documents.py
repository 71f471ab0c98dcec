"""JSON as documents: a token for each leaf of its tree; for a text, a token for each of its terms.

A token is "path,type,value": "a.city,str,san", "n,number,30", "ok,bool,true", "z,null,null". A path has the keys of
objects with dots between them; places in arrays are left out. Numbers are as they are written. The parameters of an
analyser concern the terms of texts alone. Positions count the tokens that a document has after stop words are removed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.kernels.tokens.words import LONG
from lance_duck.text.filters import terms_of_words
from lance_duck.text.json.leaves import read_json_leaves, tokens_of_leaves
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.tokens import Tokens, positions_within
from lance_duck.text.words import cut_texts, tokens_of_text

TEXT: Final = "str"
TYPES: Final = (TEXT, "number", "bool", "null")

_BETWEEN: Final = ";"
_FORM: Final = "path,type,value, with semicolons between several"


class _Number(str):
    """The text of a number in a JSON document."""

    __slots__ = ()


_DECODE: Final = json.JSONDecoder(parse_int=_Number, parse_float=_Number, strict=False).decode


def json_tokens(documents: pa.LargeStringArray, parameters: AnalyserParameters) -> Tokens:
    """Return the tokens of documents.

    Args:
        documents: JSON, without nulls.
        parameters: Parameters that are supported.

    Raises:
        InvalidInputError: A document is not JSON.
        UnsupportedError: A document is nested too deeply.
    """
    leaves = read_json_leaves(documents)
    return _plain_tokens(documents, parameters) if leaves is None else tokens_of_leaves(leaves, parameters)


def _plain_tokens(documents: pa.LargeStringArray, parameters: AnalyserParameters) -> Tokens:
    """Return the tokens of documents, of which `read_json_leaves` does not read some."""
    names: dict[str, int] = {}
    texts: list[str] = []
    text_leaves: list[int] = []
    paths: list[str] = []
    leaves: list[int] = []
    numbers: list[int] = []
    ends: list[int] = []
    count = 0
    for document in documents.to_pylist():
        for path, type_, value in _leaves(document):
            if type_ == TEXT:
                texts.append(value)
                paths.append(path)
                text_leaves.append(count)
            else:
                leaves.append(count)
                numbers.append(names.setdefault(f"{path},{type_},{value}", len(names)))
            count += 1
        ends.append(count)
    text_tokens, of_texts = _of_texts(texts, paths, names, parameters)
    in_order = np.concatenate([np.array(leaves, np.int64), np.array(text_leaves, np.int64)[of_texts]])
    order = np.argsort(in_order, kind="stable")
    ids = np.concatenate([np.array(numbers, np.int64), text_tokens])[order]
    bounds = np.searchsorted(in_order[order], [0, *ends])
    return _numbered(list(names), ids, bounds)


def json_tokens_reference(document: str, parameters: AnalyserParameters) -> Iterator[str]:
    """Yield the tokens of one document: the plain reference of `json_tokens`."""
    for path, type_, value in _leaves(document):
        yield from _terms(path, type_, value, parameters)


def query_tokens(query: str, parameters: AnalyserParameters) -> list[str]:
    """Return the tokens that a query asks for.

    Args:
        query: A query of the form "path,type,value;…"; a path has no comma, and a value no semicolon.
        parameters: Parameters that are supported.

    Raises:
        InvalidInputError: The query is of another form.
    """
    tokens: list[str] = []
    for triplet in query.split(_BETWEEN):
        path, kind, rest = triplet.partition(",")
        type_, divider, value = rest.partition(",")
        if not kind or not divider:
            raise InvalidInputError("query of JSON", expected=_FORM, found=repr(triplet))
        if type_ not in TYPES:
            raise InvalidInputError("type in a query of JSON", expected=" or ".join(TYPES), found=repr(type_))
        tokens += _terms(path, type_, value, parameters)
    return tokens


def _terms(path: str, type_: str, value: str, parameters: AnalyserParameters) -> Iterator[str]:
    if type_ != TEXT:
        yield f"{path},{type_},{value}"
        return
    words = [word for word, _ in tokens_of_text(value, parameters)]
    yield from (f"{path},{TEXT},{term}" for term in terms_of_words(words, parameters) if term is not None)


def _leaves(document: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, type and value of each leaf, in order."""
    try:
        tree = _DECODE(document)
    except ValueError as error:
        raise InvalidInputError("bad document", expected="JSON", found=f"{document[:80]!r}: {error}") from error
    except RecursionError as error:
        raise UnsupportedError("JSON that is nested too deeply", found=f"{document[:40]!r}") from error
    stack: list[tuple[str, Any]] = [("", tree)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack.extend((f"{path}.{key}" if path else key, each) for key, each in reversed(value.items()))
        elif isinstance(value, list):
            stack.extend((path, each) for each in reversed(value))
        elif isinstance(value, _Number | float):
            yield path, "number", str(value)
        elif isinstance(value, str):
            yield path, TEXT, value
        elif value is None:
            yield path, "null", "null"
        else:
            yield path, "bool", "true" if value else "false"


def _of_texts(
    texts: list[str], paths: list[str], names: dict[str, int], parameters: AnalyserParameters
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of each token of some texts, added to `names` if new, and the number of its text."""
    cut = cut_texts(pa.array(texts, pa.large_string()), parameters)
    terms = terms_of_words(cut.words, parameters)
    of_texts = np.repeat(np.arange(len(texts)), np.diff(cut.bounds))
    is_term = np.append(np.array([term is not None for term in terms], np.bool_), False)
    stays = is_term[np.where(cut.ids == LONG, len(terms), cut.ids)]
    of_texts, words = of_texts[stays], cut.ids[stays].astype(np.int64)
    distinct = {path: number for number, path in enumerate(dict.fromkeys(paths))}
    keys = np.array([distinct[path] for path in paths], np.int64)[of_texts] * max(1, len(terms)) + words
    pairs, places = np.unique(keys, return_inverse=True)
    listed = list(distinct)
    numbers = [
        names.setdefault(f"{listed[path]},{TEXT},{terms[word]}", len(names))
        for path, word in zip(*(each.tolist() for each in np.divmod(pairs, max(1, len(terms)))), strict=True)
    ]
    return np.array(numbers, np.int64)[places], of_texts


def _numbered(names: list[str], ids: NDArray[np.int64], bounds: NDArray[np.int64]) -> Tokens:
    """Return tokens whose terms are in order of their first occurrence."""
    present, firsts = np.unique(ids, return_index=True)
    order = present[np.argsort(firsts)]
    places = np.zeros(len(names), np.uint32)
    places[order] = np.arange(len(order), dtype=np.uint32)
    terms = pa.array([names[i] for i in order.tolist()], pa.large_string()).cast(pa.large_binary())
    return Tokens(terms, places[ids], positions_within(bounds), bounds.astype(np.int64))
