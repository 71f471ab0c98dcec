"""The thresholds by which a search decides: each with its unit, its reason, and the benchmark that found it."""

from __future__ import annotations

from typing import Final

ALWAYS_COMPARED_ROWS: Final = 1024
COMPARED_SHARE: Final = 200
