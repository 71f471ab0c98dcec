"""Formats of the rows of a statement: which one a request asks for, and their bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv, parquet, types

from lance_duck.arrow.types import is_any_list, is_binary, is_text
from lance_duck.errors import UnsupportedError
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.http.answers import FILE, JSON, STREAM, PieceSink, StreamedAnswer, arrow_answer
from lance_duck.serve.web.values import json_values

HTML: Final = "text/html"
CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"
NAMES: Final[Mapping[str, str]] = {"json": JSON, "csv": CSV, "parquet": PARQUET, "arrow": FILE, "arrows": STREAM}
"""Media types by their name in the parameter `format`, which is also the extension of a file."""

SAFE: Final[Mapping[str, str]] = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # "no-referrer" would make browsers send "Origin: null" with forms
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of all answers to browsers."""

_ROWS_PER_GROUP: Final = 122_880
_BYTES_PER_GROUP: Final = 64 << 20


def wanted_format(headers: Mapping[str, str], name: str | None, offered: Iterable[str]) -> str:
    """Return the media type of the answer.

    Args:
        headers: Headers of the request.
        name: A key of `NAMES`, which takes precedence over the header Accept.
        offered: Media types. The first one is the default.

    Raises:
        RequestError: The name is unknown.
        UnsupportedError: The client accepts none of the media types.
    """
    if name:
        if name not in NAMES:
            raise RequestError("unknown format", expected=", ".join(NAMES), found=name[:40])
        return NAMES[name]
    kinds = [*offered]
    accepted = headers.get("accept", "*/*")
    for pattern in _by_preference(accepted):
        main, _, sub = pattern.partition("/")
        for kind in kinds:
            if pattern in ("*/*", kind) or (sub == "*" and kind.startswith(f"{main}/")):
                return kind
    raise UnsupportedError("no such format", where="Accept", expected=", ".join(kinds), found=accepted[:200])


def _by_preference(accepted: str) -> list[str]:
    weighed = []
    for item in accepted.split(","):
        kind, *parameters = (part.strip().lower() for part in item.split(";"))
        weight = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        weighed.append((kind, float(weight) if weight.replace(".", "", 1).isdecimal() else 0.0))
    return [kind for kind, weight in sorted(weighed, key=lambda each: -each[1]) if weight > 0]


def rows_answer(schema: pa.Schema, batches: Iterable[pa.RecordBatch], media_type: str) -> StreamedAnswer:
    """Return rows as a file that browsers download.

    Args:
        schema: Schema of the rows.
        batches: The rows.
        media_type: CSV, Parquet, or a framing of Arrow.
    """
    extension = next(name for name, kind in NAMES.items() if kind == media_type)
    headers = {**SAFE, "content-disposition": f'attachment; filename="rows.{extension}"', "vary": "Accept"}
    if media_type in (FILE, STREAM):
        return arrow_answer(schema, batches, media_type, headers)
    pieces = _csv(schema, batches) if media_type == CSV else _parquet(schema, batches)
    return StreamedAnswer(pieces, f"{CSV}; charset=utf-8; header=present" if media_type == CSV else PARQUET, headers)


def _csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Generator[bytes]:
    """Yield CSV. NULL is an empty field, and strings have quotes."""
    texts = _Texts.of(schema, _fits_csv)
    sink = PieceSink()
    with csv.CSVWriter(pa.PythonFile(sink, mode="w"), texts.schema) as writer:
        for batch in batches:
            writer.write(texts.convert(batch))
            yield sink.taken()
    yield sink.taken()


def _parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Generator[bytes]:
    texts = _Texts.of(schema, _fits_parquet)
    sink = PieceSink()
    with parquet.ParquetWriter(pa.PythonFile(sink, mode="w"), texts.schema, compression="zstd") as writer:
        for group in _groups(batches):
            writer.write_table(pa.Table.from_batches(map(texts.convert, group), texts.schema))
            yield sink.taken()
    yield sink.taken()


def _groups(batches: Iterable[pa.RecordBatch]) -> Generator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS_PER_GROUP or size >= _BYTES_PER_GROUP:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


@dataclass(frozen=True)
class _Texts:
    """A schema in which columns that a format cannot store are strings: JSON for nested values."""

    schema: pa.Schema
    converted: tuple[bool, ...]

    @classmethod
    def of(cls, schema: pa.Schema, fits: Callable[[pa.DataType], bool]) -> _Texts:
        if not len(schema):
            raise RequestError("the statement returns no columns", remedy="ask for JSON")
        converted = tuple(not fits(field.type) for field in schema)
        fields = (
            pa.field(field.name, pa.string() if is_converted else field.type, field.nullable)
            for field, is_converted in zip(schema, converted, strict=True)
        )
        return cls(pa.schema(fields), converted)

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the schema."""
        columns = (
            pa.array(map(json_text, json_values(column)), pa.string()) if is_converted else column
            for column, is_converted in zip(batch.columns, self.converted, strict=True)
        )
        return pa.RecordBatch.from_arrays(list(columns), schema=self.schema)


def json_text(value: Any) -> str | None:
    """Return a JSON value as a string. Strings stay as they are."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _fits_csv(type_: pa.DataType) -> bool:
    is_zoned = types.is_timestamp(type_) and type_.tz is not None
    is_flat = types.is_primitive(type_) or types.is_boolean(type_) or types.is_null(type_) or is_text(type_)
    return is_flat and not (types.is_duration(type_) or types.is_interval(type_) or is_zoned)


def _fits_parquet(type_: pa.DataType) -> bool:
    if types.is_struct(type_):
        return type_.num_fields > 0 and all(_fits_parquet(field.type) for field in type_)
    if types.is_map(type_):
        return not types.is_null(type_.key_type) and _fits_parquet(type_.key_type) and _fits_parquet(type_.item_type)
    if is_any_list(type_):
        return _fits_parquet(type_.value_type)
    is_flat = types.is_primitive(type_) or types.is_boolean(type_) or types.is_null(type_) or types.is_decimal(type_)
    is_known = is_flat or is_text(type_) or is_binary(type_) or types.is_dictionary(type_)
    return is_known and not types.is_interval(type_)
