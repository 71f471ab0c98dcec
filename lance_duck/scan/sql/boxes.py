"""Conditions on geometries that an R-tree may answer: they are only true if two bounding boxes overlap.

    geometry && constant, ST_Intersects_Extent(geometry, constant)           functions of DuckDB
    ST_Intersects, ST_Within, ST_Contains, ST_Covers, ST_CoveredBy, ST_Touches, ST_Crosses, ST_Overlaps, ST_Equals,
    ST_ContainsProperly, ST_DWithin(geometry, constant, distance)            functions of its extension spatial

    geometry    a column, ST_GeomFromWKB(column), or ST_Point(column.x, column.y)
    constant    'POLYGON((…))'::GEOMETRY, CAST('…' AS GEOMETRY), ST_GeomFromText('…'), ST_MakeEnvelope(0, 0, 9, 9),
                or ST_Point(1, 2)

Both operands may be swapped. The box is a little larger than the constant, because DuckDB may round boxes to floats.
"""

from __future__ import annotations

import math
import re
from typing import Final

import pyarrow as pa

from lance_duck.scan.evaluator.types import Parameters
from lance_duck.scan.predicate.tree import BoxCondition, Predicate
from lance_duck.scan.sql.literals import Literal, NotSimpleError
from lance_duck.scan.sql.parser import Parser
from lance_duck.scan.sql.tokens import SqlToken
from lance_duck.wire.column_path import join_path, split_path

BOX_FUNCTIONS: Final = frozenset(
    f"st_{name}"
    for name in (
        *("intersects", "within", "contains", "covers", "coveredby", "touches", "crosses", "overlaps", "equals"),
        *("containsproperly", "dwithin", "intersects_extent"),
    )
)
GEOMETRY_FUNCTIONS: Final = ("st_geomfromwkb", "st_geomfromtext", "st_point", "st_makeenvelope")
_DISTANCE: Final = "st_dwithin"
_TYPE: Final = "geometry"
_EXTENSIONS: Final = ("geoarrow.wkb", "geoarrow.point")
_METADATA: Final = b"ARROW:extension:name"
_WKT: Final = re.compile(
    r"\s*(?:(?:MULTI)?(?:POINT|LINESTRING|POLYGON)|GEOMETRYCOLLECTION)\s*(?:ZM|Z|M)?\s*\([A-Z0-9\s(),.+-]*\)\s*",
    re.IGNORECASE | re.ASCII,
)
_WORDS: Final = re.compile(r"(?<![0-9.])[A-Z]+(?![0-9])|[()]", re.IGNORECASE)
_MARGIN: Final = 2.0**-21
"""Share by which a box grows. Floats round to a share of 2^-24."""
_LEAST: Final = 2.0**-120

_Box = tuple[float, float, float, float]


def implied_by_boxes(tokens: list[SqlToken], schema: pa.Schema, parameters: Parameters) -> Predicate | None:
    """Return the box condition that a condition implies. Returns None if it is unknown.

    Args:
        tokens: The condition.
        schema: Columns that the condition may read.
        parameters: Values bound to this condition.
    """
    if not any(_is_geometry(field) for field in schema):
        return None
    try:
        return _BoxParser(tokens, schema, parameters).condition()
    except NotSimpleError:
        return None


def box_of_text(text: str) -> _Box:
    """Return the bounding box of a geometry in WKT. Raises NotSimpleError if it is empty or unknown."""
    if _WKT.fullmatch(text) is None or "empty" in text.lower():
        raise NotSimpleError
    points = [part.split()[:2] for part in _WORDS.sub(" ", text).split(",")]
    try:
        pairs = [(float(x), float(y)) for x, y in points]
    except ValueError:
        raise NotSimpleError from None
    return _checked(
        min(x for x, _ in pairs), min(y for _, y in pairs), max(x for x, _ in pairs), max(y for _, y in pairs)
    )


def widened(box: _Box, distance: float = 0.0) -> _Box:
    """Return a box that contains every box that DuckDB could take for the given one, grown by a distance."""
    low = [side - distance for side in box[:2]]
    high = [side + distance for side in box[2:]]
    low = [side - abs(side) * _MARGIN - _LEAST for side in low]
    high = [side + abs(side) * _MARGIN + _LEAST for side in high]
    return low[0], low[1], high[0], high[1]


def _is_geometry(field: pa.Field) -> bool:
    name = getattr(field.type, "extension_name", None) or (field.metadata or {}).get(_METADATA, b"").decode()
    return name in _EXTENSIONS


def _checked(*sides: float) -> _Box:
    if not all(map(math.isfinite, sides)):
        raise NotSimpleError
    return sides[0], sides[1], sides[2], sides[3]


class _BoxParser(Parser):
    """Parser of one condition on a geometry."""

    def condition(self) -> Predicate:
        """See `implied_by_boxes`."""
        distance = 0.0
        name = self._called()
        if name in BOX_FUNCTIONS:
            self._at += 2
            operands = [self._geometry()]
            self._needs("mark", ",")
            operands.append(self._geometry())
            if name == _DISTANCE:
                self._needs("mark", ",")
                distance = self._number()
            self._needs("mark", ")")
        else:
            operands = [self._geometry()]
            self._needs("op", "&&")
            operands.append(self._geometry())
        self._needs("end", "")
        paths = [each for each in operands if isinstance(each, str)]
        boxes = [each for each in operands if not isinstance(each, str)]
        if len(paths) != 1 or not distance >= 0:
            raise NotSimpleError
        return BoxCondition(tuple(split_path(paths[0])), widened(boxes[0], distance))

    def _geometry(self) -> str | _Box:
        """Return the dotted path of a column, or the box of a constant."""
        name = self._called()
        if name == "st_geomfromwkb":
            self._at += 2
            path = self._column()
            self._needs("mark", ")")
            return path
        if name in ("st_geomfromtext", "st_makeenvelope"):
            self._at += 2
            box = box_of_text(self._text()) if name == "st_geomfromtext" else self._envelope()
            self._needs("mark", ")")
            return box
        if name == "st_point":
            return self._point()
        if self._takes("keyword", "cast"):
            self._needs("mark", "(")
            text = self._text()
            self._needs("keyword", "as")
            self._needs_type()
            self._needs("mark", ")")
            return box_of_text(text)
        if self._is_name():
            return self._column()
        text = self._text()
        self._needs("mark", "::")
        self._needs_type()
        return box_of_text(text)

    def _point(self) -> str | _Box:
        self._at += 2
        if not self._is_name():
            x = self._number()
            self._needs("mark", ",")
            y = self._number()
            self._needs("mark", ")")
            return _checked(x, y, x, y)
        x_path = self._path()[0]
        self._needs("mark", ",")
        y_path = self._path()[0]
        self._needs("mark", ")")
        if (x_path[-1], y_path[-1]) != ("x", "y") or x_path[:-1] != y_path[:-1] or len(x_path) < 2:
            raise NotSimpleError
        return join_path(x_path[:-1])

    def _envelope(self) -> _Box:
        sides = [self._number()]
        while len(sides) < 4:
            self._needs("mark", ",")
            sides.append(self._number())
        return _checked(min(sides[::2]), min(sides[1::2]), max(sides[::2]), max(sides[1::2]))

    def _column(self) -> str:
        return join_path(self._path()[0])

    def _called(self) -> str:
        """Return the name of the function that is called next, or "" without a call."""
        is_call = self._peek().kind == "word" and self._peek(1) == SqlToken("mark", "(")
        return self._peek().text.lower() if is_call else ""

    def _needs_type(self) -> None:
        if self._next().text.lower() != _TYPE:
            raise NotSimpleError

    def _number(self) -> float:
        literal = self._plain_literal()
        if literal.kind == "text" or isinstance(literal.value, bool) or not _is_number(literal):
            raise NotSimpleError
        return float(literal.value)

    def _text(self) -> str:
        literal = self._plain_literal()
        if literal.kind not in ("text", "value") or not isinstance(literal.value, str):
            raise NotSimpleError
        return literal.value


def _is_number(literal: Literal) -> bool:
    try:
        return math.isfinite(float(literal.value))
    except (TypeError, ValueError, OverflowError):
        return False
