"""The paths of the REST namespace."""

from __future__ import annotations

from typing import Final

from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.rest.queries import QUERIES
from lance_duck.serve.rest.refused import REFUSED
from lance_duck.serve.rest.tables import TABLES

READS: Final = (*TABLES, *QUERIES)
CHANGES: Final[tuple[HttpRoute, ...]] = ()
ROUTES: Final = (*READS, *CHANGES, *REFUSED)
