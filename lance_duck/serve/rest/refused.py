"""Routes of the specification that the server does not have. They answer with status 406 and code 0.

They would create versions and transactions outside the tables, keep materialized views, or upload in parts.
"""

from __future__ import annotations

from typing import Final

from lance_duck.errors import UnsupportedError
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.http.answers import HttpAnswer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute


def refuse_route(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Raise UnsupportedError."""
    del call
    raise UnsupportedError("the server does not support this operation", where=request.path)


_PATHS: Final = (
    "materialized_view/{id}/create",
    "materialized_view/{id}/refresh",
    "table/batch-commit",
    "table/version/batch-create",
    "table/{id}/backfill_column",
    "table/{id}/clone",
    "table/{id}/get_lsm_write_spec",
    "table/{id}/page_cache/prewarm",
    "table/{id}/fetch_blobs",
    "table/{id}/multipart_write/abort",
    "table/{id}/multipart_write/complete",
    "table/{id}/multipart_write/create",
    "table/{id}/version/create",
    "table/{id}/version/delete",
    "transaction/{id}/alter",
    "transaction/{id}/describe",
)

REFUSED: Final = tuple(HttpRoute("POST", f"/v1/{path}", refuse_route) for path in _PATHS)
