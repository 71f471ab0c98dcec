"""The paths of pages and of SQL."""

from __future__ import annotations

from typing import Final

from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.web.blobs import answer_cell
from lance_duck.serve.web.html import asset
from lance_duck.serve.web.login import log_in, log_out, show_login
from lance_duck.serve.web.sql import answer_sql
from lance_duck.serve.web.table import answer_table
from lance_duck.serve.web.tables import answer_tables
from lance_duck.serve.web.versions import answer_versions

STATEMENTS: Final = (HttpRoute("GET", "/sql", answer_sql), HttpRoute("POST", "/sql", answer_sql))
"""SQL over HTTP. `run_statements` decides what a caller may run."""

PAGES: Final = (
    HttpRoute("GET", "/", answer_tables),
    HttpRoute("GET", "/table/{t}", answer_table),
    HttpRoute("GET", "/table/{t}/versions", answer_versions),
    HttpRoute("GET", "/table/{t}/cell", answer_cell),
    HttpRoute("GET", "/login", show_login, is_open=True),
    HttpRoute("POST", "/login", log_in, is_open=True),
    HttpRoute("POST", "/logout", log_out, is_open=True),
    HttpRoute("GET", "/static/{name}", asset, is_open=True),
)
"""The pages. They only read."""
