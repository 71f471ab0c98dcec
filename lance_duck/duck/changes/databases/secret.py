"""CREATE SECRET and DROP SECRET for Lance tables, implemented by `duck.databases.secrets`.

    CREATE [OR REPLACE] [TEMPORARY] SECRET [IF NOT EXISTS] [name]
        (TYPE lance [, SCOPE 's3://…' | ['s3://…', …]] [, KEY_ID, SECRET, SESSION_TOKEN, REGION, ENDPOINT, USE_SSL,
         URL_STYLE, ACCOUNT_NAME, ACCOUNT_KEY, or any storage option by its name])
    DROP [TEMPORARY] SECRET [IF EXISTS] name

If several secrets match, the one with the longest SCOPE is used. Secrets are kept as long as the DuckDB instance
exists. Secrets of other types cannot be used, because DuckDB does not return their values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.databases.secrets import Secret, storage_options
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.redact import remember

_TYPE: Final = "lance"
_DEFAULT: Final = "__default_lance"
_OWN: Final = frozenset({"type", "scope", "provider"})
_LASTING: Final = frozenset({"persistent", "temporary", "temp"})


@dataclass(frozen=True)
class CreateSecretStatement(LanceStatement):
    """A CREATE SECRET of TYPE lance.

    Attributes:
        replaces: OR REPLACE.
        may_exist: IF NOT EXISTS.
        is_persistent: Whether the statement has PERSISTENT, or IN with a storage name.
        name: Its name.
        options: The options in parentheses.
    """

    writes = False

    replaces: bool
    may_exist: bool
    is_persistent: bool
    name: str
    options: Options

    @classmethod
    def read(cls, head: StatementHead) -> CreateSecretStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 3 if body.says(1, "or", "replace") else 1
        replaces, lasting = place == 3, body.word(place)
        place += lasting in _LASTING
        if body.word(place) != "secret" or head.explain.tokens:
            return None
        place += 1
        may_exist = body.says(place, "if", "not", "exists")
        place += 3 if may_exist else 0
        name = body.tokens[place].name if place < len(body) and body.text_at(place) != "(" else None
        place += name is not None
        is_stored = body.word(place) == "in"
        place += 2 if is_stored else 0
        if body.text_at(place) != "(" or body.closer(place) != len(body) - 1:
            return None
        options = Options.of(body.part(place), "CREATE SECRET")
        if folded(options.texts.get("type", "").strip().strip("'\"")) != _TYPE:
            return None
        return cls(replaces, may_exist, lasting == "persistent" or is_stored, name or _DEFAULT, options)

    @property
    def subject(self) -> str:
        """The secret, for errors."""
        return f"secret {self.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return True: the secret is for Lance tables."""
        return True

    def run(self, session: ChangeSession) -> ChangeResult:
        """Store the secret."""
        if self.is_persistent:
            raise UnsupportedError(
                "a secret of TYPE lance cannot be PERSISTENT",
                where=self.name,
                remedy="use CREATE SECRET on each connection",
            )
        secrets = session.catalog.secrets
        if self.may_exist and secrets.has(self.name):
            return _succeeded()
        # A DuckDB error about a value may contain it.
        remember({name: text.strip().strip("'") for name, text in self.options.texts.items() if name not in _OWN})
        values = self.options.values(session, self.options.texts)
        if folded(str(values.get("provider") or "config")) != "config":
            raise UnsupportedError(
                "a secret of TYPE lance supports only PROVIDER config",
                where=self.name,
                expected="config",
                remedy="leave out PROVIDER, or read credentials from the environment without a secret",
            )
        options = {name: value for name, value in values.items() if name not in _OWN}
        scopes = _scopes(values.get("scope"))
        for scope in scopes or ("s3://",):
            session.catalog.binder.access.check_secret(scope)
        secrets.add(Secret(self.name, scopes, storage_options(options)), replaces=self.replaces)
        return _succeeded()


@dataclass(frozen=True)
class DropSecretStatement(LanceStatement):
    """A DROP SECRET.

    Attributes:
        name: The secret.
    """

    writes = False

    name: str

    @classmethod
    def read(cls, head: StatementHead) -> DropSecretStatement | None:
        """Read the clauses. Returns None for other statements."""
        body: Clauses = head.body
        place = 1 + (body.word(1) in _LASTING)
        if body.word(place) != "secret" or head.explain.tokens:
            return None
        place += 3 if body.says(place + 1, "if", "exists") else 1
        name = body.tokens[place].name if place == len(body) - 1 else None
        return None if name is None else cls(name)

    @property
    def subject(self) -> str:
        """The secret, for errors."""
        return f"secret {self.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the secret is for Lance tables."""
        return session.catalog.secrets.has(self.name)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Forget the secret."""
        session.catalog.secrets.remove(self.name)
        return nothing()


def _succeeded() -> ChangeResult:
    """Return the result that DuckDB returns for a CREATE SECRET."""
    return ChangeResult('SELECT true AS "Success"')


def _scopes(value: Any) -> tuple[str, ...]:
    scopes = tuple(value) if isinstance(value, list) else () if value is None else (value,)
    if not all(isinstance(scope, str) for scope in scopes):
        raise InvalidInputError("invalid SCOPE of a secret", expected="a URI prefix, or a list of prefixes")
    return scopes
