"""Automatic cleanup, which ends in `update_config`: see `lance_duck.maintenance.auto_cleanup`.

    ALTER TABLE target SET AUTO_CLEANUP [WITH] (interval = n, older_than = '14 days', retain_versions = n)
    ALTER TABLE target UNSET AUTO_CLEANUP
    SHOW MAINTENANCE ON | FROM target

`interval` is the number of versions from one cleanup to the next: 20 where it is not given. SHOW MAINTENANCE gives the
rows `enabled`, and `interval`, `older_than` and `retain_versions` where they are set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

import pyarrow as pa

from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, nothing, returned
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.upkeep.operations import age
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.errors import InvalidInputError
from lance_duck.maintenance.auto_cleanup import INTERVAL, OLDER_THAN, RETAIN

_KEYS: Final = {"interval": INTERVAL, "older_than": OLDER_THAN, "retain_versions": RETAIN}
_ALIASES: Final = {
    "older_than_seconds": "older_than",
    **dict.fromkeys(("retain", "retain_n_versions"), "retain_versions"),
}
_INTERVAL: Final = 20


@dataclass(frozen=True)
class AutoCleanupStatement(TableStatement):
    """An ALTER TABLE … SET | UNSET AUTO_CLEANUP.

    Attributes:
        is_set: SET, and not UNSET.
        options: What follows it.
    """

    parses: ClassVar[bool] = False
    is_only_ours: ClassVar[bool] = True

    is_set: bool
    options: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> AutoCleanupStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 4 if body.says(2, "if", "exists") else 2
        target = TableName.at(body, place) if body.says(0, "alter", "table") else None
        if target is None or body.word(target.after + 1) != "auto_cleanup":
            return None
        if body.word(target.after) not in ("set", "unset"):
            return None
        return cls(target, body.word(target.after) == "set", body.part(target.after + 2))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Change the settings."""
        dataset = session.handle(self.target).current()
        options = Options.of(self.options, "AUTO_CLEANUP")
        session.explain_words("Settings of the table would change. Nothing was written.")
        session.refuse_in_transaction("ALTER TABLE")
        if self.is_set:
            dataset.update_config(_config(options.values(session, tuple(_KEYS), _ALIASES)))
        elif options.texts:
            raise InvalidInputError("options of UNSET AUTO_CLEANUP", expected="none", found=", ".join(options.texts))
        else:
            dataset.optimize.disable_auto_cleanup()
        return nothing()


@dataclass(frozen=True)
class ShowMaintenanceStatement(TableStatement):
    """A SHOW MAINTENANCE."""

    writes: ClassVar[bool] = False
    is_only_ours: ClassVar[bool] = True

    @classmethod
    def read(cls, head: StatementHead) -> ShowMaintenanceStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        if not body.says(0, "show", "maintenance") or body.word(2) not in ("on", "from"):
            return None
        target = TableName.at(body, 3)
        return None if target is None or target.after < len(body) else cls(target)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Return the settings."""
        session.explain_words("The settings of automatic cleanup would be shown.")
        config = session.dataset(self.target).config()
        rows = {"enabled": "true" if INTERVAL in config else "false"}
        rows |= {name: config[key] for name, key in _KEYS.items() if key in config}
        table = pa.table({"Key": list(rows), "Value": list(rows.values())})
        return returned(table, ["VARCHAR", "VARCHAR"], -1)


def _config(values: Mapping[str, Any]) -> dict[str, str]:
    """Return settings of a table.

    Raises:
        InvalidInputError: A number or a time span makes no sense.
    """
    values = {"interval": _INTERVAL, **{name: value for name, value in values.items() if value is not None}}
    for name in ("interval", "retain_versions"):
        value = values.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInputError(name, where="AUTO_CLEANUP", expected="a number above 0", found=repr(value))
    return {_KEYS[name]: _spelled(value) if name == "older_than" else str(value) for name, value in values.items()}


def _spelled(value: Any) -> str:
    """Return a time span as the config spells it; a text stays as it is."""
    span = age(value)
    if isinstance(value, str):
        return value
    seconds = span // timedelta(seconds=1)
    rest = (span - timedelta(seconds=seconds)) // timedelta(microseconds=1)
    return f"{seconds}s {rest}us" if rest else f"{seconds}s"
