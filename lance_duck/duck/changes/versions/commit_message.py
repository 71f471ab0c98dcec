"""The message of a commit.

    CALL lance_set_commit_message(author, message [, extra_info => text])

What the version says that the transaction makes: `lance_versions` and `read_transaction` show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from lance_duck.duck.changes.procedure import Procedure
from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.errors import InvalidInputError
from lance_duck.wire.transaction import COMMIT_AUTHOR, COMMIT_MESSAGE

_PROPERTIES: Final = {"author": COMMIT_AUTHOR, "message": COMMIT_MESSAGE, "extra_info": "extra_info"}


class SetCommitMessage(Procedure):
    """A CALL that says what the commit of the transaction is about."""

    name: ClassVar[str] = "set_commit_message"
    parameters: ClassVar[Mapping[str, str]] = MappingProxyType(dict.fromkeys(_PROPERTIES, "VARCHAR"))
    required: ClassVar[int] = 2

    def run(self, session: ChangeSession) -> ChangeResult:
        """Keep the texts for the commit; NULL says nothing.

        Raises:
            InvalidInputError: There is no transaction.
        """
        values = self.values(session)
        if session.block is None:
            raise InvalidInputError(
                "a commit message outside a transaction", where=self.subject, remedy="BEGIN first, then COMMIT"
            )
        session.block.properties = {_PROPERTIES[name]: text for name, text in values.items() if text is not None}
        return nothing()
