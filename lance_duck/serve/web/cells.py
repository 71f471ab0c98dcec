"""Cells of tables on pages: short texts, sparklines of vectors, and the kinds of images."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import types

from lance_duck.arrow.types import is_any_number, is_binary, storage_type
from lance_duck.markup import size_text
from lance_duck.serve.web.values import json_values

_SUMMARY: Final = 96  # characters that are always visible
_LONGEST: Final = 2000  # characters of an opened cell
_POINTS: Final = 64
_HEX: Final = 8  # bytes
_WIDTH, _HEIGHT = 96, 20


class CellLink(Protocol):
    """Returns a path for a cell."""

    def __call__(self, row: int, name: str) -> str:
        """Return a path, from the position of a row and the name of a column."""


@dataclass(frozen=True)
class CellBytes:
    """A cell with bytes, of which a page needs the beginning.

    Attributes:
        head: The first bytes.
        size: Number of bytes.
        link: Path of the whole cell, or "".
    """

    head: bytes
    size: int
    link: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell, as templates show it.

    Attributes:
        kind: "null", "number", "text", "long", "vector", "image" or "bytes".
        text: The visible text.
        full: Text of an opened cell. Empty unless `kind` is "long".
        points: Points of a sparkline. Empty unless `kind` is "vector".
        link: Path of the cell's bytes, or "".
    """

    kind: str
    text: str = ""
    full: str = ""
    points: str = ""
    link: str = ""


@dataclass(frozen=True)
class ShownColumn:
    """A column, as templates show it.

    Attributes:
        name: Name.
        type: Type as a string.
        is_number: Whether its values are numbers, which are aligned to the right.
        is_vector: Whether its values are vectors.
        cells: One cell for each row.
    """

    name: str
    type: str
    is_number: bool
    is_vector: bool
    cells: Sequence[Cell] = field(repr=False)


def shown_columns(rows: pa.Table, link: CellLink | None = None) -> list[ShownColumn]:
    """Return the columns of a few rows."""
    columns = []
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        array = column.combine_chunks()
        type_ = storage_type(array.type)
        cells = _cells(array, partial(link or _no_link, name=name))
        columns.append(ShownColumn(name, str(column.type), is_any_number(type_), is_number_list(type_), cells))
    return columns


def is_number_list(type_: pa.DataType) -> bool:
    """Return whether a type is a vector of numbers."""
    return bool(types.is_fixed_size_list(type_) and type_.list_size and is_any_number(type_.value_type))


def bytes_cell(value: CellBytes) -> Cell:
    """Return a cell with bytes: an image, or its size and first bytes."""
    image = image_type(value.head)
    if image is not None:
        return Cell("image", f"{image.partition('/')[2].upper()}, {size_text(value.size)}", link=value.link)
    dots = "…" if value.size > _HEX else ""
    return Cell("bytes", size_text(value.size), f"{value.head[:_HEX].hex(' ')}{dots}", link=value.link)


def image_type(head: bytes) -> str | None:
    """Return the media type of an image that pages show, from its first bytes. SVG is not among them."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def text_cell(value: Any) -> Cell:
    """Return the cell of a JSON value."""
    if value is None:
        return Cell("null", "null")
    if isinstance(value, bool):
        return Cell("text", str(value).lower())
    if isinstance(value, int | float):
        return Cell("number", str(value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _SUMMARY and "\n" not in text:
        return Cell("text", text)
    summary = " ".join(text[:_SUMMARY].split())
    rest = f"\n… {len(text) - _LONGEST:,} more characters" if len(text) > _LONGEST else ""
    return Cell("long", f"{summary}…", text[:_LONGEST] + rest)


def _cells(array: pa.Array, link: Callable[[int], str]) -> list[Cell]:
    type_ = storage_type(array.type)
    if is_binary(type_) and not isinstance(array.type, pa.UuidType):
        values = (array.storage if isinstance(array, pa.ExtensionArray) else array).to_pylist()
        return [
            text_cell(None) if value is None else bytes_cell(CellBytes(value[:32], len(value), link(row)))
            for row, value in enumerate(values)
        ]
    if is_number_list(type_):
        values = array.storage if isinstance(array, pa.ExtensionArray) else array
        return [_vector(each.values) if each.is_valid else text_cell(None) for each in values]
    values = json_values(array)
    if types.is_timestamp(type_):
        return [text_cell(value and value.replace("T", " ")) for value in values]
    return [text_cell(value) for value in values]


def _no_link(row: int, name: str) -> str:
    return ""


def _vector(values: pa.Array) -> Cell:
    numbers = np.nan_to_num(values.to_numpy(zero_copy_only=False).astype(np.float64), posinf=0.0, neginf=0.0)
    first = ", ".join(f"{number:.3g}" for number in numbers[:4].tolist())
    dots = ", …" if len(numbers) > 4 else ""
    return Cell("vector", f"{len(numbers)}: {first}{dots}", points=sparkline(numbers))


def sparkline(numbers: Any) -> str:
    """Return the points of an SVG polyline in a box of 96 × 20. Neighbours share a point if there are many numbers."""
    starts = np.unique(np.linspace(0, len(numbers), _POINTS, endpoint=False).astype(np.int64))
    means = np.add.reduceat(numbers, starts) / np.diff([*starts, len(numbers)])
    low, high = float(means.min()), float(means.max())
    scaled = (means - low) / (high - low) if high > low else np.full(len(means), 0.5)
    xs = np.linspace(1, _WIDTH - 1, len(means)) if len(means) > 1 else np.array([_WIDTH / 2])
    ys = _HEIGHT - 2 - scaled * (_HEIGHT - 4)
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True))
