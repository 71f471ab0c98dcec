"""The paths of the REST namespace."""

from __future__ import annotations

from typing import Final

from lance_duck.serve.rest.changes import CHANGES
from lance_duck.serve.rest.queries import QUERIES
from lance_duck.serve.rest.refused import REFUSED
from lance_duck.serve.rest.tables import TABLES

READS: Final = (*TABLES, *QUERIES)
ROUTES: Final = (*READS, *CHANGES, *REFUSED)
