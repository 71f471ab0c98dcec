"""`tokenize`: the tokens that a full-text index stores of a text, and that a query asks it for."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from lance_duck.arguments import checked_call, declared_arguments
from lance_duck.errors import WrongTypeError
from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import AnalyserArguments, AnalyserParameters
from lance_duck.text.tokens import FtsToken


@checked_call
def tokenize(query: str, **options: Unpack[AnalyserArguments]) -> list[FtsToken]:
    """Return the tokens of a text, as a full-text index with these parameters has them.

    Args:
        query: The text.
        **options: See `AnalyserArguments`; those of `create_scalar_index(column, "INVERTED", …)`.

    Returns:
        Tokens in order; positions count from the first one, and tokens that were left out leave gaps.

    Raises:
        InvalidInputError: An argument, a tokenizer or a language is unknown, or a number is out of its range.
        WrongTypeError: An argument is of a wrong type.
        UnsupportedError: The tokenizer is one of Lance that is not supported.
    """
    if not isinstance(query, str):
        raise WrongTypeError("bad query", where="tokenize", expected="str", found=type(query).__name__)
    declared = declared_arguments(tokenize, options, AnalyserArguments)
    tokens = Analyser(AnalyserParameters.from_arguments(declared, "tokenize")).terms_of(query)
    return [replace(token, position=token.position - tokens[0].position) for token in tokens]
