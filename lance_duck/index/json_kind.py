"""The kind of indexes over the values at one path of a JSON column.

The files are those of another kind, the target: a B-tree, bitmaps, zones or n-grams over the values at the path. The
details name the path and the target. All values have one type, and the files tell which: bool, int64, double or string.
A document without the path, and a JSON null, count as null. Segments without a value that is not null contain strings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_duck.arguments import refuse_unknown
from lance_duck.errors import CorruptError, InvalidInputError, NotIndexableError, WrongTypeError
from lance_duck.index.bitmap import layout as bitmap_layout
from lance_duck.index.bitmap.kind import BITMAP
from lance_duck.index.btree import layout as btree_layout
from lance_duck.index.btree.kind import BTREE
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.json_path import JsonPath, stored_path
from lance_duck.index.kind import BuildOptions, Details, IndexKind, MergeInput, ScalarIndex
from lance_duck.index.ngram.kind import NGRAM
from lance_duck.index.query import Null, Query
from lance_duck.index.zones import layout as zones_layout
from lance_duck.index.zones.kind import ZONE_MAP
from lance_duck.wire.pb import index_pb2

PATH: Final = "path"
TARGET: Final = "target_index_type"
TARGET_PARAMETERS: Final = "target_index_parameters"

_EXTENSIONS: Final = ("arrow.json", "lance.json")
_TYPES: Final = (pa.bool_(), pa.int64(), pa.float64(), pa.string())
_TARGETS: Final[Mapping[str, IndexKind]] = MappingProxyType(
    {"btree": BTREE, "bitmap": BITMAP, "zonemap": ZONE_MAP, "ngram": NGRAM}
)
_VALUES: Final = MappingProxyType(
    {
        BTREE.name: (btree_layout.LOOKUP, btree_layout.MIN),
        BITMAP.name: (bitmap_layout.FILE, bitmap_layout.KEYS),
        ZONE_MAP.name: (zones_layout.ZONE_MAP_FILE, zones_layout.BOUNDS[0]),
    }
)
"""The file and the column that have the type of the values, by the name of the target."""
_PARAMETERS: Final = MappingProxyType({BTREE.name: ("zone_size",), ZONE_MAP.name: (zones_layout.ROWS_PER_ZONE,)})
_REFUSED: Final = MappingProxyType(
    {
        "inverted": "create an INVERTED index on the JSON column itself",
        "fts": "create an INVERTED index on the JSON column itself",
        "bloomfilter": "choose BTREE: the files of a Bloom filter do not say whether 1 is a number or a string",
        "fm": "choose NGRAM",
    }
)


class JsonKind:
    """The kind of indexes over one path, with one target. See `IndexKind`.

    Attributes:
        text: The path as the user wrote it.
        path: The path.
        target: Kind of the files.
    """

    name: str = "Json"
    type_url: str = "/lance.index.pb.JsonIndexDetails"
    versions: range = range(1)
    reaches_into_lists: bool = False

    def __init__(self, text: str, path: JsonPath, target: IndexKind) -> None:
        self.text = text
        self.path = path
        self.target = target
        self.rows_by: str = target.rows_by

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonKind) and (self.path, self.target) == (other.path, other.target)

    def __hash__(self) -> int:
        return hash((self.path, self.target))

    @classmethod
    def asked(cls, parameters: Mapping[str, Any]) -> tuple[JsonKind, dict[str, Any]]:
        """Return the kind for a user's parameters, and the parameters of the target.

        Raises:
            WrongTypeError: A parameter is unknown or missing.
            InvalidInputError: The path is not supported.
            NotIndexableError: The target is not supported.
        """
        for name in (PATH, TARGET):
            if not isinstance(parameters.get(name), str):
                example = "'$.a.b'" if name == PATH else "'btree'"
                raise WrongTypeError(
                    f"parameter {name} of a JSON index",
                    expected=f"a string, such as {example}",
                    found=repr(parameters.get(name)),
                )
        text, target_name = parameters[PATH], parameters[TARGET]
        path = stored_path(text)
        if path is None:
            raise InvalidInputError(
                "parameter path of a JSON index",
                expected="keys and positions, such as '$.a.b', '$.\"k.e\"' or '$.a[0]'",
                found=repr(text),
            )
        target = _TARGETS.get(_plain(target_name))
        if target is None:
            raise NotIndexableError(
                f"a JSON index cannot have target_index_type {target_name!r}",
                expected=", ".join(_TARGETS),
                remedy=_REFUSED.get(_plain(target_name)),
            )
        return cls(text, path, target), _settings(parameters, target)

    @classmethod
    def of(cls, details: bytes) -> JsonKind | None:
        """Return the kind that a segment's details describe. Returns None if it is damaged or not supported."""
        message = _message(details)
        path = None if message is None else stored_path(message.path)
        target = None if message is None else _target_of(message.target_details.type_url)
        return None if message is None or path is None or target is None else cls(message.path, path, target)

    @property
    def details(self) -> bytes:
        """Details of a segment whose target does not have details."""
        return self._wrapped(Details(0)).value

    @property
    def shown(self) -> dict[str, Any]:
        """Path and target, as descriptions of the index show them."""
        return {"path": self.text, "target_index_type": self.target.name, "target_details": {}}

    def refusal(self, *, stable_row_ids: bool) -> str | None:
        """Return why a table cannot have this index, or None if it can."""
        if stable_row_ids and self.target is BTREE:
            return "a JSON index with a B-tree does not say whether its rows are stable row ids or addresses"
        return None

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a column has JSON documents."""
        return isinstance(type_, pa.BaseExtensionType) and type_.extension_name in _EXTENSIONS

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return whether a search can answer a query on the values at the path.

        IS NULL is not answered for numbers with a fraction: pylance indexes infinite numbers, which are null here.

        Args:
            query: The query.
            type_: Type of the values, or null if it is unknown.
        """
        if pa.types.is_null(type_) or (isinstance(query, Null) and pa.types.is_floating(type_)):
            return False
        return self.target.answers(query, type_)

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> ScalarIndex:
        """Open a segment of the target. The type of the values is read from the files."""
        return self.target.open(files, self._value_type(files), Details(0, _inner(details.value)))

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment. `VALUE` holds the values at the path."""
        return self._wrapped(self.target.build(rows, writer, options))

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from other segments and new rows."""
        inner = [replace(part, details=_inner(part.details)) for part in parts]
        return self._wrapped(self.target.merge(inner, rows, writer, options))

    def can_follow(self) -> bool:
        """Return whether entries can follow moved rows."""
        return self.target.can_follow()

    def _value_type(self, files: SegmentReader) -> pa.DataType:
        if self.target.name not in _VALUES:
            return pa.string()
        name, column = _VALUES[self.target.name]
        file = files.peek(name)
        place = file.schema.get_field_index(column)
        type_ = file.schema.field(place).type if place >= 0 else None
        if type_ not in _TYPES:
            raise CorruptError(
                "the values of a JSON index have the wrong type",
                where=file.path,
                expected=", ".join(map(str, _TYPES)),
                found=str(type_),
            )
        return type_

    def _wrapped(self, details: Details) -> Details:
        message = index_pb2.JsonIndexDetails(path=self.text)
        message.target_details.type_url = self.target.type_url
        message.target_details.value = details.value
        return Details(0, message.SerializeToString(deterministic=True))


WHOLE: JsonKind = JsonKind("$", (), BTREE)
"""The kind over whole documents, which stands for all kinds over paths."""


def problem_of(details: bytes) -> str:
    """Return why `JsonKind.of` does not support a segment's details."""
    message = _message(details)
    if message is None:
        return "its details are damaged"
    if stored_path(message.path) is None:
        return f"JSON path {message.path!r} is not supported"
    return f"JSON indexes of kind {message.target_details.type_url!r} are not supported"


def _message(details: bytes) -> index_pb2.JsonIndexDetails | None:
    try:
        return index_pb2.JsonIndexDetails.FromString(details)
    except DecodeError:
        return None


def _inner(details: bytes) -> bytes:
    message = _message(details)
    return b"" if message is None else message.target_details.value


def _target_of(type_url: str) -> IndexKind | None:
    message = type_url.rpartition(".")[2].lower()
    return next((kind for kind in _TARGETS.values() if kind.type_url.rpartition(".")[2].lower() == message), None)


def _settings(parameters: Mapping[str, Any], target: IndexKind) -> dict[str, Any]:
    """Return the parameters of the target: those next to the path, and those in the JSON object of one parameter."""
    own = {name: value for name, value in parameters.items() if name not in (PATH, TARGET, TARGET_PARAMETERS)}
    more = parameters.get(TARGET_PARAMETERS)
    if isinstance(more, str):
        with suppress(ValueError):
            more = json.loads(more or "{}")
    if more is not None and not isinstance(more, Mapping):
        raise InvalidInputError(f"parameter {TARGET_PARAMETERS}", expected="a JSON object", found=repr(more))
    settings = {**(more or {}), **own}
    known = (PATH, TARGET, TARGET_PARAMETERS, *_PARAMETERS.get(target.name, ()))
    refuse_unknown(settings, known, f"index of kind Json over a {target.name}", "parameter")
    return settings


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
