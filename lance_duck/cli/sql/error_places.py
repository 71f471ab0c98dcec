"""The position in a statement that an error refers to.

`DuckDBPyConnection.sql` binds a statement without its text, so its errors do not show where an unknown name stands.
DuckDB does show it when it explains the statement, which runs nothing.
"""

from __future__ import annotations

from typing import Final

import lance_duck as ld
from lance_duck.cli.message import message_of
from lance_duck.cli.sql.script import ScriptStatement, first_word

_EXPLAIN: Final = "EXPLAIN\n"
_EXPLAINED: Final = frozenset({"select", "from", "with", "values", "insert", "update", "delete", "merge"})
_UNPLACED: Final = ("Binder Error", "Catalog Error")


def placed_message(connection: ld.Connection, statement: ScriptStatement, error: Exception) -> str:
    """Return the message of a failed statement, with the line of the error if it can be found."""
    message = message_of(error)
    if not message.startswith(_UNPLACED) or "\nLINE " in message or first_word(statement.text) not in _EXPLAINED:
        return statement.located(message)
    # An error in a transaction may abort it, and then nothing more can be asked.
    cursor = connection.cursor() if connection.in_transaction else connection
    try:
        cursor.execute(_EXPLAIN + statement.text)
    except Exception as again:
        told = message_of(again)
        if told.startswith(message.partition("\n")[0]):
            return ScriptStatement(statement.text, statement.line - 1, statement.script).located(told)
    finally:
        if cursor is not connection:
            cursor.close()
    return statement.located(message)
