"""The routes that change tables and names."""

from __future__ import annotations

from typing import Final

from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.rest.branches import BRANCHES
from lance_duck.serve.rest.columns import COLUMN_CHANGES
from lance_duck.serve.rest.indexes import INDEXES
from lance_duck.serve.rest.names import NAMES
from lance_duck.serve.rest.writes import WRITES

CHANGES: Final[tuple[HttpRoute, ...]] = (*WRITES, *INDEXES, *COLUMN_CHANGES, *BRANCHES, *NAMES)
"""Routes of writes, indexes, columns, versions, tags, branches and names."""
