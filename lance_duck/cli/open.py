"""Which version of a table a command reads."""

from __future__ import annotations

from datetime import datetime

import lance_duck as ld
from lance_duck.errors import InvalidInputError


def open_table(
    table: str, version: int | None = None, tag: str | None = None, asof: datetime | None = None
) -> ld.LanceDataset:
    """Open a version of a table. Raises InvalidInputError when more than one is asked for."""
    if sum(choice is not None for choice in (version, tag, asof)) > 1:
        raise InvalidInputError("more than one version was asked for", remedy="give one of --version, --tag, --asof")
    return ld.dataset(table, version=tag if version is None else version, asof=asof)
