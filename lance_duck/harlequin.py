"""An adapter for Harlequin, the terminal SQL IDE: `harlequin -a lance FOLDER`, or tables instead of a folder.

You hold: command-line arguments. You get: a connection for Harlequin's editor and catalog.
Never here: SQL, which `duck` handles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harlequin.exception import HarlequinConnectionError, HarlequinQueryError
from harlequin_duckdb.adapter import DuckDbAdapter, DuckDbConnection, DuckDbCursor

from lance_duck.cli.sql.places import VersionArguments, connect_to, is_missing
from lance_duck.errors import LanceDuckError, NotFoundError


class LanceAdapter(DuckDbAdapter):  # type: ignore[misc]  # mypy ignores Harlequin's types, see pyproject.toml
    """Harlequin's adapter for DuckDB, with Lance tables in the database.

    Args:
        conn_str: A folder of tables, or individual tables. If empty, SQL refers to tables by path.
        read_only: Whether changes of Lance tables are refused.
        _: Options of other adapters.
    """

    ADAPTER_OPTIONS = None
    ADAPTER_DETAILS = "Lance tables in DuckDB SQL, by lance-duck."

    def __init__(self, conn_str: Sequence[str], read_only: bool | str = False, **_: Any) -> None:
        super().__init__(conn_str, no_init=True, read_only=read_only)
        self._places = [place for place in conn_str if place]

    def connect(self) -> HarlequinLanceConnection:
        """Connect to the folder or the tables.

        Raises:
            HarlequinConnectionError: The folder or a table does not exist.
        """
        try:
            for place in self._places:
                if is_missing(place):
                    raise NotFoundError("no such folder", where=place, expected="a folder of tables, or a table")
            connection = connect_to(self._places, VersionArguments(), read_only=self.read_only)
        except LanceDuckError as error:
            raise HarlequinConnectionError(str(error), title="The tables cannot be opened.") from error
        self.ADAPTER_DRIVER_DETAILS = f"{connection!r}"
        return HarlequinLanceConnection(connection)


class HarlequinLanceConnection(DuckDbConnection):  # type: ignore[misc]
    """Harlequin's connection to DuckDB, through a `lance_duck.Connection`."""

    def execute(self, query: str) -> DuckDbCursor | None:
        """Run a statement. Returns its rows, or None for statements without a result. Raises HarlequinQueryError."""
        try:
            return super().execute(query)
        except LanceDuckError as error:
            raise HarlequinQueryError(str(error), title="The statement failed:") from error

    def close(self) -> None:
        """Close the connection."""
        self.conn.close()
