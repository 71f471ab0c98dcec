"""The settings of a full-text index, from a user's arguments or from the details in the manifest.

details: InvertedIndexDetails, a message without custom stop words. If a segment has files, their parameters take
precedence.

index_version: the format of the files (1, 2 or 3), but always 3 if documents are list elements.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from google.protobuf.message import DecodeError

from lance_duck.arguments import byte_count, refuse_unknown
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.index.inverted.layout import VARINTS, WORDS, InvertedParameters
from lance_duck.index.kind import Details
from lance_duck.text.parameters import AnalyserArguments, AnalyserParameters
from lance_duck.wire.pb import index_pb2

FORMAT_VERSION: Final = "format_version"
FORMAT_VARIABLE: Final = "LANCE_FTS_FORMAT_VERSION"
"""Environment variable with the default format of new indexes. pylance uses the same variable."""

DOCUMENT_GRANULARITY: Final = "document_granularity"
DOCUMENT_TOKENIZER: Final = "lance_tokenizer"
FORMATS: Final = range(1, 4)

_OPTIONS: Final = (FORMAT_VERSION, DOCUMENT_GRANULARITY, "memory_limit", "num_workers")
_ANALYSERS: Final = (*AnalyserArguments.__annotations__, *(f.name for f in fields(AnalyserParameters)))
INVERTED_PARAMETERS: Final = tuple(dict.fromkeys((*_ANALYSERS, *_OPTIONS)))
"""Names of the parameters of a new index."""

ROW: Final = "row"
LIST_ELEMENT: Final = "list_element"
"""Document granularities: a document is a row or a list element."""

_LARGE_BLOCK: Final = 256
_CODE: Final = ("split_identifiers", "split_on_numerics", "preserve_original", "index_operators")
_PLAIN: Final = (
    *("with_position", "lower_case", "stem", "remove_stop_words", "ascii_folding"),
    *("min_ngram_length", "max_ngram_length", "prefix_only"),
)
_CODE_TOKENIZER: Final = "code"
_WHERE: Final = "an Inverted index"


@dataclass(frozen=True)
class InvertedSettings:
    """The settings of an index.

    Attributes:
        form: Layout of segments, with the parameters of the analyser that they store.
        parameters: How texts are analysed.
        memory_limit: Memory limit of a build, in bytes. None if the user did not set it.
        workers: Number of threads that analyse texts. None for one thread per processor.
    """

    form: InvertedParameters
    parameters: AnalyserParameters
    memory_limit: int | None = None
    workers: int | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> InvertedSettings:
        """Return the settings for a user's arguments.

        Args:
            arguments: pylance's parameters, by name. `AnalyserArguments` describes the parameters of analysers.

        Raises:
            WrongTypeError: A parameter does not exist, or has the wrong type.
            InvalidInputError: A value is invalid, or values contradict each other.
            UnsupportedError: The analyser is not supported.
        """
        refuse_unknown(arguments, INVERTED_PARAMETERS, _WHERE, "parameter")
        named = {name: value for name, value in arguments.items() if name not in _OPTIONS}
        parameters = AnalyserParameters.from_arguments(named, _WHERE)
        parameters.require_support(_WHERE)
        granularity = granularity_of(arguments)
        limit = _memory_bytes(arguments.get("memory_limit"))
        workers = _count("num_workers", arguments.get("num_workers"), 0)
        form = _form(parameters, _format(arguments.get(FORMAT_VERSION), parameters.block_size), granularity)
        return cls(form, parameters, limit, None if workers is None else max(1, workers))

    @classmethod
    def of_segment(cls, form: InvertedParameters) -> InvertedSettings:
        """Return the settings of an existing segment, even if its analyser is not supported.

        Raises:
            CorruptError: The parameters of the analyser are invalid.
        """
        return cls(form, AnalyserParameters.from_json(json.dumps(dict(form.params))))

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that create an index with the same settings, by pylance's names."""
        arguments = {**asdict(self.parameters), FORMAT_VERSION: self.form.format_version}
        words = self.parameters.custom_stop_words
        arguments[DOCUMENT_GRANULARITY] = self.form.document_granularity
        return {**arguments, "custom_stop_words": None if words is None else list(words)}

    def details(self) -> Details:
        """Return the details of a segment for the manifest."""
        parameters, form = self.parameters, self.form
        message = index_pb2.InvertedIndexDetails(
            base_tokenizer=parameters.base_tokenizer,
            language=json.dumps(parameters.language),
            max_token_length=parameters.max_token_length,
            block_size=form.block_size,
            posting_format_version=form.format_version,
            **{name: getattr(parameters, name) for name in _PLAIN},
        )
        if parameters.base_tokenizer == _CODE_TOKENIZER:
            code = index_pb2.InvertedIndexDetails.CodeConfig(**{name: getattr(parameters, name) for name in _CODE})
            message.code_config.MergeFrom(code)
        if form.document_granularity == LIST_ELEMENT:
            message.document_granularity = index_pb2.InvertedIndexDetails.LIST_ELEMENT
        version = max(FORMATS) if form.document_granularity == LIST_ELEMENT else form.format_version
        return Details(version, message.SerializeToString())


def granularity_of(arguments: Mapping[str, Any]) -> str:
    """Return the document granularity: `ROW` (the default) or `LIST_ELEMENT`.

    Raises:
        InvalidInputError: The granularity in the arguments is unknown.
    """
    value = arguments.get(DOCUMENT_GRANULARITY)
    name = getattr(value, "value", value)
    if name is None or (isinstance(name, str) and name.lower() in (ROW, LIST_ELEMENT)):
        return ROW if name is None else name.lower()
    raise InvalidInputError(DOCUMENT_GRANULARITY, where=_WHERE, expected="ROW or LIST_ELEMENT", found=repr(name))


def parameters_for(arguments: Mapping[str, Any], *, is_json: bool) -> Mapping[str, Any]:
    """Return arguments with the tokenizer of a JSON column or a text column.

    Raises:
        InvalidInputError: The parameters select a tokenizer that does not match the column.
    """
    expected = "json" if is_json else "text"
    if arguments.get(DOCUMENT_TOKENIZER) not in (None, expected):
        tokenizer = repr(arguments[DOCUMENT_TOKENIZER])
        raise InvalidInputError(
            DOCUMENT_TOKENIZER, where=_WHERE, expected=f"{expected!r}, the column's tokenizer", found=tokenizer
        )
    return {**arguments, DOCUMENT_TOKENIZER: expected}


def shown_settings(details: bytes) -> dict[str, Any]:
    """Return the settings in a details message, under pylance's names, or {} if it cannot be parsed."""
    message = _message(details)
    if message is None:
        return {}
    shown = asdict(_parameters(message))
    return {**shown, "lance_tokenizer": None, DOCUMENT_GRANULARITY: _granularity(message)}


def is_by_element(details: bytes) -> bool:
    """Return whether documents are list elements, according to a details message."""
    message = _message(details)
    return message is not None and _granularity(message) == LIST_ELEMENT


def settings_in(details: bytes) -> InvertedSettings:
    """Return the settings in a details message, which lacks custom stop words.

    If the message cannot be parsed, returns the default settings.
    """
    message = _message(details)
    if message is None:
        return InvertedSettings.of({FORMAT_VERSION: 2})
    version = message.posting_format_version if message.HasField("posting_format_version") else 2
    parameters = _parameters(message)
    return InvertedSettings(_form(parameters, version, _granularity(message)), parameters)


def _message(details: bytes) -> index_pb2.InvertedIndexDetails | None:
    try:
        return index_pb2.InvertedIndexDetails.FromString(details)
    except DecodeError:
        return None


def _parameters(message: index_pb2.InvertedIndexDetails) -> AnalyserParameters:
    """Return the analyser's parameters in a message, or the defaults if an old writer left it empty."""
    if not message.HasField("base_tokenizer") and not message.language:
        return AnalyserParameters()
    code = {name: getattr(message.code_config, name) for name in _CODE}
    return AnalyserParameters(
        base_tokenizer=message.base_tokenizer or AnalyserParameters.base_tokenizer,
        language=_language(message.language),
        max_token_length=message.max_token_length if message.HasField("max_token_length") else None,
        block_size=message.block_size if message.HasField("block_size") else AnalyserParameters.block_size,
        **{name: getattr(message, name) for name in _PLAIN},
        **code,
    )


def _granularity(message: index_pb2.InvertedIndexDetails) -> str:
    by_element = message.document_granularity == index_pb2.InvertedIndexDetails.LIST_ELEMENT
    return LIST_ELEMENT if by_element else ROW


def _form(parameters: AnalyserParameters, format_version: int, granularity: str) -> InvertedParameters:
    return InvertedParameters(
        params=json.loads(parameters.to_json()),
        with_position=parameters.with_position,
        block_size=parameters.block_size,
        format_version=format_version,
        posting_tail_codec=WORDS if format_version == min(FORMATS) else VARINTS,
        document_granularity=granularity,
    )


def _language(text: str) -> str:
    """Return the language in a text, which may be a JSON string. Returns the default language if there is none."""
    try:
        language = json.loads(text)
    except ValueError:
        language = text
    return language if isinstance(language, str) and language else AnalyserParameters.language


def _format(value: Any, block_size: int) -> int:
    large = block_size == _LARGE_BLOCK
    parameter = FORMAT_VERSION
    if value is None:
        value, parameter = os.environ.get(FORMAT_VARIABLE), FORMAT_VARIABLE
    if value is None:
        return 3 if large else 2
    name = str(value).lower().removeprefix("v") if isinstance(value, int | str) else ""
    if isinstance(value, bool) or name not in map(str, FORMATS):
        raise InvalidInputError(parameter, where=_WHERE, expected="1, 2 or 3", found=repr(value))
    if large and int(name) < max(FORMATS):
        raise InvalidInputError(
            f"{parameter}={name} does not support block_size={_LARGE_BLOCK}",
            where=_WHERE,
            remedy="use format_version=3",
        )
    return int(name)


def _memory_bytes(limit: Any) -> int | None:
    """Convert a memory limit to bytes. Numbers are in MiB, as in pylance, and strings have a unit."""
    if isinstance(limit, str) and not limit.isdecimal():
        return byte_count(limit, "memory_limit")
    megabytes = _count("memory_limit", limit, 1)
    return None if megabytes is None else megabytes << 20


def _count(name: str, value: Any, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongTypeError(name, where=_WHERE, expected="a whole number", found=repr(value))
    if value < least:
        raise InvalidInputError(name, where=_WHERE, expected=f"{least} or more", found=value)
    return value
