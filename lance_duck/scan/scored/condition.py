"""A filter on the scores of a search, such as `_score > 1`. It applies to the rows that the search finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lance_duck.scan.filters import Filter, make_filter
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import readable_schema
from lance_duck.scan.scored.layout import score_field
from lance_duck.wire.schema import Schema


def on_scores(schema: Schema, options: ScanOptions, scores: Sequence[str]) -> tuple[ScanOptions, Filter | None]:
    """Separate the filter of a search from its options if the filter reads scores.

    Args:
        schema: Columns of the table.
        options: The options of the search.
        scores: Names of the scores.

    Returns:
        The options without the filter, and the filter. If the filter does not read scores, the same options and None.

    Raises:
        InvalidInputError: The filter reads scores, and is not a valid condition.
    """
    text = options.filter[0] if isinstance(options.filter, tuple) and options.filter else options.filter
    if not isinstance(text, str) or not any(name in text.lower() for name in scores):
        return options, None
    columns = [field for field in readable_schema(schema) if field.name not in scores]
    available = pa.schema([*columns, *map(score_field, scores)])
    condition = make_filter(options.filter, available, options.parameters)
    if condition is None or not any(path[0] in scores for path in condition.paths()):
        return options, None
    return replace(options, filter=None, parameters=None), condition
