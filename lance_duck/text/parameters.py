"""Analyser parameters: as given by callers, as stored in segments (JSON), and the supported values.

A segment's `params` is one JSON object with a key for each field of `AnalyserParameters`. Unknown keys are ignored.
Missing keys have their default values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, TypedDict

from lance_duck.arguments import did_you_mean, known_names, unknown_value
from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError, WrongTypeError

LANGUAGES: Final = (
    "Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek", "Hungarian", "Italian", "Norwegian",
    "Portuguese", "Romanian", "Russian", "Spanish", "Swedish", "Tamil", "Turkish",
)  # fmt: skip
"""Languages that have a stemmer and stop words."""

BASE_TOKENIZERS: Final = ("simple", "whitespace", "raw", "ngram")
"""Supported base tokenizers."""

OTHER_TOKENIZERS: Final = ("code", "icu", "icu/split")
"""Lance's unsupported base tokenizers. `jieba/…` and `lindera/…`, each with a model, are also unsupported."""

DOCUMENT_TOKENIZERS: Final = ("text", "json")
ANALYZERS: Final = ("text", "code")
BLOCK_SIZES: Final = (128, 256)

_MODELS: Final = ("jieba", "lindera")
_UNFILTERED: Final = ("ngram", "code")
_CODE_FLAGS: Final = ("split_identifiers", "split_on_numerics", "preserve_original", "index_operators")
_COUNTS: Final = ("min_ngram_length", "max_ngram_length", "max_token_length", "block_size")
_LARGEST: Final = (1 << 32) - 1


class AnalyserArguments(TypedDict, total=False):
    """Keyword arguments that control how texts are analysed. None selects the default, except for `max_token_length`.

    Keys:
        analyzer: "text". The profile "code" is not supported.
        base_tokenizer: "simple" (tokens are runs of letters and digits), "whitespace" (ASCII whitespace separates
            tokens), "raw" (the text is one token) or "ngram".
        lance_tokenizer: "text", or "json" if documents are JSON, as in columns of JSON.
        language: Language of the stemmer and the stop words; "English" by default.
        max_token_length: Minimum size of dropped tokens, in UTF-8 bytes. Defaults to 40. None disables the limit.
        lower_case: Ignore case; True by default.
        stem: Compare the stems of words. Defaults to True, or False for "ngram".
        remove_stop_words: Drop the language's most frequent words. Defaults to True, or False for "ngram".
        custom_stop_words: Stop words that replace the language's list. They are compared after stemming.
        ascii_folding: Ignore accents of Latin letters; True by default.
        min_ngram_length, max_ngram_length: Minimum and maximum length of an n-gram in characters, both 3 by default.
        prefix_only: Make n-grams only from the start of a text.
        split_identifiers, split_on_numerics, preserve_original, index_operators: Flags of "code", which is not
            supported.
    """

    analyzer: str | None
    base_tokenizer: str | None
    lance_tokenizer: str | None
    language: str | None
    max_token_length: int | None
    lower_case: bool | None
    stem: bool | None
    remove_stop_words: bool | None
    custom_stop_words: list[str] | None
    ascii_folding: bool | None
    min_ngram_length: int | None
    max_ngram_length: int | None
    prefix_only: bool | None
    split_identifiers: bool | None
    split_on_numerics: bool | None
    preserve_original: bool | None
    index_operators: bool | None


@dataclass(frozen=True)
class AnalyserParameters:
    """The parameters of a text analyser, and two index parameters that a segment stores with them.

    Attributes:
        lance_tokenizer: "text", or "json" if documents are JSON.
        with_position: The index stores positions.
        block_size: Number of documents in a posting block of the index.
    For the others see `AnalyserArguments`.
    """

    lance_tokenizer: str = "text"
    base_tokenizer: str = "simple"
    language: str = "English"
    with_position: bool = False
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    custom_stop_words: tuple[str, ...] | None = None
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False
    block_size: int = 128
    split_identifiers: bool = False
    split_on_numerics: bool = False
    preserve_original: bool = False
    index_operators: bool = False

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], where: str | None = None) -> AnalyserParameters:
        """Return the parameters for keyword arguments.

        Args:
            arguments: `AnalyserArguments`, and the fields of this class.
            where: Name of the function that received the arguments, for error messages.

        Raises:
            InvalidInputError: An argument, a tokenizer or a language is unknown, or a number is out of its range.
            WrongTypeError: A value has the wrong type.
        """
        names = [*AnalyserArguments.__annotations__, *(f.name for f in fields(cls))]
        for name in arguments:
            if name not in names:
                raise _unknown(name, names, where)
        values = {name: value for name, value in arguments.items() if value is not None or name == "max_token_length"}
        base = _base_tokenizer(values, where)
        defaults = cls(base_tokenizer=base)
        if base in _UNFILTERED:
            defaults = replace(defaults, stem=False, remove_stop_words=False)
        if base == "code":
            defaults = replace(defaults, split_on_numerics=True, preserve_original=True)
        flags = [name for name in _CODE_FLAGS if values.get(name)]
        if base != "code" and flags:
            raise InvalidInputError(f"{flags[0]} needs analyzer 'code'", where=where, found=repr(base))
        values = {name: _checked(name, value, getattr(defaults, name), where) for name, value in values.items()}
        parameters = replace(defaults, **values)
        parameters.check_words(where)
        return parameters

    @classmethod
    def from_json(cls, text: str, where: str | None = None) -> AnalyserParameters:
        """Return the parameters stored in a segment. Unknown tokenizer and language names are kept unchanged.

        Args:
            text: JSON, one object.
            where: Name of the file that contains the text, for error messages.

        Raises:
            CorruptError: The text is not a JSON object, or a value has the wrong type.
        """
        try:
            stored = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CorruptError(
                "parameters of a full-text index are not JSON", where=where, found=repr(error)
            ) from error
        if not isinstance(stored, dict):
            raise CorruptError(
                "bad parameters of a full-text index", where=where, expected="an object", found=text[:80]
            )
        defaults = cls()
        values: dict[str, Any] = {}
        for name in (f.name for f in fields(cls)):
            value = stored.get(name)
            if value is None and name not in ("max_token_length", "custom_stop_words"):
                continue
            if name not in stored:
                continue
            try:
                values[name] = _checked(name, value, getattr(defaults, name), where)
            except InvalidInputError as error:
                raise CorruptError("bad parameters of a full-text index", where=where, found=str(error)) from error
        return replace(defaults, **values)

    def to_json(self) -> str:
        """Return the JSON for a segment: one object with all keys, without spaces, as in other writers' files."""
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False)

    @property
    def is_json(self) -> bool:
        """Whether documents are JSON."""
        return self.lance_tokenizer == "json"

    @property
    def refusal(self) -> str | None:
        """The reason why these parameters are not supported, in a few words. None if they are supported.

        An index with unsupported parameters is valid. It is kept, but not used.
        """
        if self.lance_tokenizer not in DOCUMENT_TOKENIZERS:
            return f"lance_tokenizer {self.lance_tokenizer!r} is not supported"
        if self.base_tokenizer not in BASE_TOKENIZERS:
            return f"base_tokenizer {self.base_tokenizer!r} is not supported"
        if self.base_tokenizer == "ngram" and not 0 < self.min_ngram_length <= self.max_ngram_length:
            return f"n-grams of {self.min_ngram_length} to {self.max_ngram_length} characters are not supported"
        if (self.stem or self.remove_stop_words) and self.language not in LANGUAGES:
            return f"language {self.language!r} is not supported"
        return None

    def require_support(self, where: str | None = None) -> None:
        """Reject unsupported parameters.

        Raises:
            UnsupportedError: A parameter is not supported. The message names the parameter and all base tokenizers that
                are supported.
        """
        refusal = self.refusal
        if refusal is not None:
            supported = ", ".join(map(repr, BASE_TOKENIZERS))
            raise UnsupportedError(refusal, where=where, remedy=f"base_tokenizer can be {supported}")

    def check_words(self, where: str | None = None) -> None:
        """Check that Lance knows the tokenizers and the language, and that numbers are within their ranges.

        Raises:
            InvalidInputError: A tokenizer or language is unknown, or a number is out of its range.
        """
        if self.lance_tokenizer not in DOCUMENT_TOKENIZERS:
            raise unknown_value("unknown lance_tokenizer", self.lance_tokenizer, DOCUMENT_TOKENIZERS, where)
        base = self.base_tokenizer
        if base not in BASE_TOKENIZERS + OTHER_TOKENIZERS and base.split("/")[0] not in _MODELS:
            raise unknown_value("unknown base_tokenizer", base, BASE_TOKENIZERS, where)
        if self.language not in LANGUAGES:
            remedy = did_you_mean(self.language, LANGUAGES)
            languages = "one of " + ", ".join(LANGUAGES)
            raise InvalidInputError(
                "unknown language", where=where, expected=languages, found=repr(self.language), remedy=remedy
            )
        if base == "ngram" and not 0 < self.min_ngram_length <= self.max_ngram_length:
            lengths = f"{self.min_ngram_length} and {self.max_ngram_length}"
            expected = "0 < min_ngram_length <= max_ngram_length"
            raise InvalidInputError("bad lengths of n-grams", where=where, expected=expected, found=lengths)
        if self.block_size not in BLOCK_SIZES:
            raise InvalidInputError("bad block_size", where=where, expected="128 or 256", found=self.block_size)


def utf8_bytes(text: str, what: str, where: str | None = None) -> bytes:
    """Return the UTF-8 of a text.

    Raises:
        InvalidInputError: The text contains a lone surrogate, which UTF-8 cannot encode.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"bad {what}", where=where, expected="valid Unicode", found=ascii(text)[:80]) from error


def _unknown(name: str, names: list[str], where: str | None) -> InvalidInputError:
    remedy = did_you_mean(name, names)
    expected = known_names(names) if remedy is None else None
    return WrongTypeError(f"unknown full-text parameter {name!r}", where=where, expected=expected, remedy=remedy)


def _base_tokenizer(values: dict[str, Any], where: str | None) -> str:
    """Return the base tokenizer that the values select. Sets `base_tokenizer` in `values`, and removes `analyzer`."""
    profile = values.pop("analyzer", None)
    if profile is not None and profile not in ANALYZERS:
        raise unknown_value("unknown analyzer", profile, ANALYZERS, where)
    base = values.get("base_tokenizer", "code" if profile == "code" else "simple")
    if not isinstance(base, str):
        raise WrongTypeError("bad base_tokenizer", where=where, expected="str", found=type(base).__name__)
    if profile is not None and (profile == "code") != (base == "code"):
        expected = "code together with code"
        raise InvalidInputError(
            "analyzer and base_tokenizer disagree", where=where, expected=expected, found=f"{profile!r} and {base!r}"
        )
    values["base_tokenizer"] = base
    return base


def _checked(name: str, value: Any, default: Any, where: str | None) -> Any:
    """Return a parameter's value, checked for its type and range."""
    if name == "custom_stop_words":
        return _words(value, where)
    if name == "max_token_length" and value is None:
        return None
    kind = int if name in _COUNTS else type(default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise WrongTypeError(f"bad {name}", where=where, expected=kind.__name__, found=type(value).__name__)
    if kind is int and not 0 <= value <= _LARGEST:
        raise InvalidInputError(f"bad {name}", where=where, expected=f"0 to {_LARGEST}", found=value)
    return value


def _words(value: Any, where: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, list | tuple) or not all(isinstance(w, str) for w in value):
        shown_value = repr(value)[:80]
        raise WrongTypeError("bad custom_stop_words", where=where, expected="a list of str", found=shown_value)
    for word in value:
        utf8_bytes(word, "custom_stop_words", where)
    return tuple(value)
