"""Curves that were measured when an index was built, and are stored with it.

_indices/{uuid}/recall.json     UTF-8, two lines; listed among the segment's files
    line 1   {"kind": "lance_duck.recall", "version": 1, "digest": XXH3-64 of line 2 as 16 hexadecimal digits}
    line 2   {"type": "IVF_PQ", "metric": "l2", "dim", "rows", "partitions", "curves": [curve, …]}
             type, metric, dimensions, vectors and partitions of the measured segment; for segments with graphs also
             "displaced": true, because the queries were displaced rows: without displacement, curves are too optimistic
    curve    {"k", "share", "queries", "measured": [[nprobes, ef, candidates, recall, error, cost], …]}
             the attributes of `curve.Curve`; ef and candidates may be null

A file is ignored if it is corrupt, has an unknown kind or version, does not describe its segment, or was measured with
queries that were not displaced as required. The curves are then measured again. The file affects search results only
through the settings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Final

from lance_duck.checksums.digests import digest
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.scan.nearest.settings.curve import Curve, MeasuredSetting, Setting

_KIND: Final = "lance_duck.recall"
_VERSION: Final = 1
_LARGEST: Final = 1 << 31
_LIKE: Final = 1.25  # settings remain valid while the row count changes by at most this factor


def recall_file_bytes(index: VectorIndex, curves: Iterable[Curve]) -> bytes:
    """Encode the curves of a segment as the contents of its recall file.

    Args:
        index: The segment.
        curves: The curves of the segment.
    """
    items = [
        {
            "k": curve.k,
            "share": curve.share,
            "queries": curve.queries,
            "measured": [
                [each.setting.nprobes, each.setting.ef, each.setting.candidates, each.recall, each.error, each.cost]
                for each in curve.measured
            ],
        }
        for curve in curves
    ]
    body = _json({**_about(index), "rows": index.num_rows, "curves": items})
    return _json({"kind": _KIND, "version": _VERSION, "digest": f"{digest(body):016x}"}) + b"\n" + body + b"\n"


def decoded(data: bytes | None, index: VectorIndex) -> list[Curve]:
    """Decode the curves in a segment's recall file. Returns an empty list if the file is missing or invalid."""
    if data is None or not is_intact(data):
        return []
    try:
        content = json.loads(data.split(b"\n")[1])
        rows = content["rows"]
        if any(content[name] != value for name, value in _about(index).items()):
            return []
        if not index.num_rows / _LIKE <= rows <= index.num_rows * _LIKE:
            return []
        return [_curve(each) for each in content["curves"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def is_intact(data: bytes) -> bool:
    """Return whether a recall file has a known version and a correct digest."""
    head, _, body = data.removesuffix(b"\n").partition(b"\n")
    try:
        about = json.loads(head)
    except (ValueError, RecursionError):
        return False
    return bool(about == {"kind": _KIND, "version": _VERSION, "digest": f"{digest(body):016x}"})


def _about(index: VectorIndex) -> dict[str, Any]:
    files = index.files
    about = {"type": files.kind, "metric": index.metric, "dim": index.dim, "partitions": files.num_partitions}
    return {**about, "displaced": True} if index.shape.has_graphs else about


def _curve(item: Any) -> Curve:
    """Decode a curve. Raises ValueError, TypeError or KeyError if the item is invalid."""
    measured = [
        MeasuredSetting(
            Setting(_whole(nprobes), None if ef is None else _whole(ef), None if most is None else _whole(most)),
            _real(recall, 1.0),
            _real(error, 1.0),
            _real(cost, math.inf),
        )
        for nprobes, ef, most, recall, error, cost in item["measured"]
    ]
    curve = Curve.of(_whole(item["k"]), _real(item["share"], 1.0), _whole(item["queries"]), measured, is_stored=True)
    if not measured or list(curve.measured) != measured:
        raise ValueError("settings that nobody would choose")
    return curve


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LARGEST:
        raise ValueError("no number of something")
    return value


def _real(value: Any, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most or value == math.inf:
        raise ValueError("no share or cost")
    return float(value)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
