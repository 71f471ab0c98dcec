"""Types of what SQL expressions are evaluated on: columns and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

Columns = Mapping[str, pa.Array]
Parameters = Sequence[Any] | Mapping[str, Any] | None
