"""A rewritten statement, which reads less than the one it replaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Replaced:
    """A statement with tables in place of larger ones.

    Attributes:
        sql: The statement, as text or parsed.
        tables: What its new names stand for.
        parameters: Its parameters where they are others; None: those that were given.
        plan: How the tables came about, for EXPLAIN; None: the tables themselves know.
    """

    sql: Any
    tables: Mapping[str, Any]
    parameters: Any = None
    plan: str | None = None
