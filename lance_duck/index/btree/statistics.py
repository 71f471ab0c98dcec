"""Values as pylance shows them in the statistics of an index."""

from __future__ import annotations

import pyarrow as pa


def shown(value: pa.Scalar) -> str:
    """Return a value as text."""
    return "NULL" if not value.is_valid else str(value)
