"""ATTACH and DETACH of folders of Lance tables, implemented by `TableCatalog.attach` and `TableCatalog.forget`.

    ATTACH [OR REPLACE] [DATABASE] [IF NOT EXISTS] 'folder' [AS name]
        (TYPE lance [, READ_ONLY] [, VERSION n | 'tag'] [, TIMESTAMP '…'] [, BRANCH 'b'] [, NAMESPACE 'a$b'])
    ATTACH … 'a$b' [AS name] (TYPE lance, ENDPOINT 'http://…' [, BEARER_TOKEN '…'] …)
    DETACH [DATABASE] [IF EXISTS] name

NAMESPACE is a namespace in the folder. ENDPOINT is the URL of a REST service. 'a$b' is one of its namespaces, and '$'
is its root (see `namespaces`). VERSION, TIMESTAMP and BRANCH select the version of each table. Tables without the
selected version are not listed. Tables are read-only unless they are at the newest version of their main branch. All
cursors of the instance see attached databases. A missing folder is created with its first table. READ_ONLY and OR
REPLACE require an existing folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.tables.folder import Folder
from lance_duck.duck.tables.handle import VersionChoice
from lance_duck.duck.tables.namespace_folder import NamespaceFolder
from lance_duck.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from lance_duck.namespaces import DirectoryNamespace, RestNamespace
from lance_duck.namespaces.names import name_parts
from lance_duck.store import split_place
from lance_duck.wire.paths import TABLE_SUFFIX

_TYPE: Final = "lance"
_OPTIONS: Final = (
    *("type", "read_only", "read_write", "version", "timestamp", "branch"),
    *("namespace", "endpoint", "bearer_token"),
)


@dataclass(frozen=True)
class AttachStatement(LanceStatement):
    """An ATTACH of a folder of Lance tables.

    Attributes:
        replaces: OR REPLACE.
        may_exist: IF NOT EXISTS.
        place: The path or URI of the folder, as an expression.
        name: The name after AS, if any.
        options: The options in parentheses.
    """

    writes = False

    replaces: bool
    may_exist: bool
    place: Clauses
    name: str | None
    options: Options

    @classmethod
    def read(cls, head: StatementHead) -> AttachStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 3 if body.says(1, "or", "replace") else 1
        replaces = place == 3
        place += body.word(place) == "database"
        may_exist = body.says(place, "if", "not", "exists")
        place += 3 if may_exist else 0
        opener = next((i for i in range(place + 1, len(body)) if body.text_at(i) == "(" and body.depths[i] == 0), 0)
        if not opener or body.closer(opener) != len(body) - 1 or head.explain.tokens:
            return None
        options = Options.of(body.part(opener), "ATTACH")
        if folded(options.texts.get("type", "").strip().strip("'\"")) != _TYPE:
            return None
        named = body.find("as", start=place, stop=opener)
        name = body.tokens[named + 1].name if 0 < named == opener - 2 else None
        return cls(replaces, may_exist, body.part(place, opener if named < 0 else named), name, options)

    @property
    def subject(self) -> str:
        """The folder, for errors."""
        return self.place.text.strip()

    def concerns(self, session: ChangeSession) -> bool:
        """Return True: the statement is about Lance tables."""
        return True

    def run(self, session: ChangeSession) -> ChangeResult:
        """Attach the folder."""
        session.refuse_in_transaction("ATTACH")
        (place,) = session.relation(f"SELECT {self.place.text}", {}).fetchall()[0]
        values = self.options.values(session, _OPTIONS)
        choice, read_only = self._choice(values)
        name = self.name or split_place(str(place))[1].partition(".")[0]
        databases = session.relation("SELECT database_name FROM system.main.duckdb_databases()", {}).fetchall()
        present = folded(name) in (folded(database) for (database,) in databases)
        if present and not self.replaces:
            if self.may_exist:
                return nothing()
            raise AlreadyExistsError(
                f"database {name!r} already exists",
                remedy="use ATTACH OR REPLACE, ATTACH IF NOT EXISTS, or another name after AS",
            )
        if str(place).rstrip("/").endswith(TABLE_SUFFIX):
            raise InvalidInputError(
                "ATTACH takes a folder, and this path is a table",
                where=str(place),
                expected="a folder of tables",
                remedy="attach the folder that contains it, or read the table by its path: FROM 'folder/name.lance'",
            )
        may_be_new = read_only is None and not present
        folder = _folder(session, str(place), values, may_be_new=may_be_new)
        if present:
            detach(session, name)
        session.catalog.attach(name, folder, choice, read_only)
        return nothing()

    def _choice(self, values: dict[str, Any]) -> tuple[VersionChoice, str | None]:
        """Return the version to read, and the reason why changes are rejected, if any."""
        if values.get("read_only") and values.get("read_write"):
            raise InvalidInputError("ATTACH has both READ_ONLY and READ_WRITE", expected="one of them")
        version, moment, branch = values.get("version"), values.get("timestamp"), values.get("branch")
        asof = moment.isoformat() if isinstance(moment, datetime) else moment
        choice = VersionChoice(*(None if text is None else str(text) for text in (version, None, asof, branch)))
        chosen = _chosen(choice)
        fixed = None if chosen is None else f"attached at {chosen}, which SQL cannot change"
        if chosen is not None and values.get("read_write"):
            raise InvalidInputError(
                f"ATTACH has READ_WRITE and {chosen}, which SQL cannot change",
                remedy="leave out READ_WRITE, or attach the newest version of the main branch",
            )
        return choice, "attached READ_ONLY" if values.get("read_only") else fixed


def _chosen(choice: VersionChoice) -> str | None:
    """Describe the chosen version for errors. Returns None for the newest version of the main branch."""
    if choice.is_newest:
        return None
    if choice.branch is not None and choice.version is None and choice.asof is None:
        return f"branch {choice.branch!r}"
    if choice.version is None or choice.version.strip().isdecimal():
        return "an older version"
    return f"version {choice.version!r}"


def _folder(session: ChangeSession, place: str, values: dict[str, Any], *, may_be_new: bool) -> Folder:
    """Return the tables of a folder, a namespace in it, or a namespace of a REST service."""
    inside, endpoint, token = values.get("namespace"), values.get("endpoint"), values.get("bearer_token")
    if token is not None and endpoint is None:
        raise InvalidInputError("ATTACH has a BEARER_TOKEN without an ENDPOINT", expected="both, or neither")
    if endpoint is not None:
        if inside is not None:
            raise InvalidInputError(
                "ATTACH has both NAMESPACE and ENDPOINT",
                expected="ENDPOINT alone, with the namespace as the path of ATTACH",
            )
        session.catalog.binder.access.check(str(endpoint))
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        service = RestNamespace(str(endpoint), headers=headers)
        return NamespaceFolder(service, name_parts(place), f"{service.uri}/{place}")
    options = session.catalog.options_for(place)
    if inside is None:
        return Folder(place, options, may_be_new=may_be_new)
    return NamespaceFolder(DirectoryNamespace(place, storage_options=options), name_parts(str(inside)), place)


@dataclass(frozen=True)
class DetachStatement(LanceStatement):
    """A DETACH of a database of Lance tables.

    Attributes:
        name: The database.
    """

    writes = False

    name: str

    @classmethod
    def read(cls, head: StatementHead) -> DetachStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 1 + (body.word(1) == "database")
        place += 2 if body.says(place, "if", "exists") else 0
        name = body.tokens[place].name if place == len(body) - 1 else None
        return None if name is None or head.explain.tokens else cls(name)

    @property
    def subject(self) -> str:
        """The database, for errors."""
        return f"database {self.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the database is a Lance database."""
        return session.catalog.database(self.name) is not None

    def run(self, session: ChangeSession) -> ChangeResult:
        """Detach the database. Its tables are kept."""
        session.refuse_in_transaction("DETACH")
        detach(session, self.name)
        return nothing()


def detach(session: ChangeSession, name: str) -> None:
    """Detach a database if it is a Lance database.

    Raises:
        UnsupportedError: The database contains the connection's own tables.
        duckdb.Error: The connection uses the database.
    """
    database = session.catalog.database(name)
    if database is session.catalog.default:
        raise UnsupportedError(
            "the database that the connection was opened with cannot be detached",
            where=name,
            remedy="open the connection without tables, then ATTACH the folder",
        )
    session.run(f"DETACH {quoted(name)}")
    if database is not None:
        session.catalog.forget(name)
