"""The names of the history and metadata functions, and a check for texts that may call one."""

from __future__ import annotations

import re
from typing import Final

PREFIX: Final = "lance_"
CHANGES: Final = "table_changes"
COMMITS: Final = "commits"
METRICS: Final = "metrics"
NEAR_DUPLICATES: Final = "near_duplicates"
BRANCH_DIFF: Final = "branch_diff"
NAMES: Final = frozenset(
    {"versions", "tags", "branches", "fragments", "files", "info", CHANGES, COMMITS, "indexes", "indices", "config"}
    | {NEAR_DUPLICATES, BRANCH_DIFF, METRICS, "table_metadata", "schema_metadata", "column_metadata"}
)
_WORDS: Final = "|".join(sorted(NAMES))
_CALL: Final = re.compile(rf'(?:\b{PREFIX}|\.\s*"?)(?:{_WORDS})\b', re.IGNORECASE)


def may_be_called(text: str) -> bool:
    """Return whether a text may contain a call of one of the functions."""
    return _CALL.search(text) is not None
