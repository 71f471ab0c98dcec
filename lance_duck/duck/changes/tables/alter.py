"""ALTER TABLE, which ends in `add_columns`, `drop_columns`, `alter_columns` and `rename_table`.

    ALTER TABLE [IF EXISTS] t
        ADD [COLUMN] [IF NOT EXISTS] c type [DEFAULT e]
        DROP [COLUMN] [IF EXISTS] c
        RENAME [COLUMN] c TO d
        ALTER [COLUMN] c [SET DATA] TYPE type | SET NOT NULL | DROP NOT NULL
        RENAME TO u

DEFAULT gives the rows that there are their values; later rows have none. A table is called as its folder, which another
name moves beside itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lance_duck.duck.changes.head import StatementHead
from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession, check_table_name
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.target import TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import folded
from lance_duck.errors import UnsupportedError
from lance_duck.store.uri import join_uri, split_place
from lance_duck.verbs.versions.rename import rename_table
from lance_duck.wire.paths import TABLE_SUFFIX
from lance_duck.write.relations import relation_reader

_REMEDIES: Final = (
    (frozenset({"primary", "key"}), "ON CONFLICT (columns) names keys; CREATE TABLE takes PRIMARY KEY"),
    (frozenset({"unique"}), "ON CONFLICT (columns) names keys"),
    (frozenset({"set", "default"}), "INSERT names the value, or ADD COLUMN … DEFAULT gives one to the rows there are"),
    (frozenset({"not", "null", "add"}), "ADD COLUMN without it, UPDATE, then ALTER COLUMN … SET NOT NULL"),
    (frozenset({"using"}), "ADD COLUMN, UPDATE it, DROP COLUMN the old one"),
    (frozenset({"check"}), "WHERE in the statements that write"),
)
"""What does the same, by words of the form."""
_REFUSED: Final = frozenset({"check", "primary", "unique", "references", "generated", "collate"})


@dataclass(frozen=True)
class AlterStatement(TableStatement):
    """An ALTER TABLE.

    Attributes:
        action: What follows its name.
    """

    action: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> AlterStatement | None:
        """Read the clauses; None if they are not those of an ALTER TABLE."""
        body = head.body
        place = 4 if body.says(2, "if", "exists") else 2
        target = TableName.at(body, place) if body.says(0, "alter", "table") else None
        return None if target is None else cls(target, body.part(target.after))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Change the columns, or the name."""
        session.refuse_in_transaction("ALTER TABLE")
        session.explain_query("SELECT 1 WHERE false", {})
        handle = session.handle(self.target)
        table = session.table(self.target, handle.current())
        verb, place = self.action.word(0), 1 + (self.action.word(1) == "column")
        if self.action.says(0, "rename", "to"):
            return self._rename(session)
        if verb == "add":
            self._add(session, table, place)
        elif verb == "drop":
            self._drop(table, place)
        elif verb in ("rename", "alter") and len(self.action) > place + 1 and self.action.word(place) != "to":
            column = table.column(self.action.tokens[place].name or "")
            change = self._change(session, verb, place + 1)
            if change.get("data_type") != column.arrow:
                table.dataset.alter_columns({"path": column.name, **change})
        else:
            raise self._unsupported()
        session.catalog.refresh(force=True)
        database = session.database(self.target)
        if database is not None:
            database.show_columns(self.target.name)
        return nothing()

    def _rename(self, session: ChangeSession) -> ChangeResult:
        name = self.action.tokens[2].name if len(self.action) == 3 else None
        if name is None:
            raise self._unsupported()
        check_table_name(name)
        handle, database = session.handle(self.target), session.database(self.target)
        if database is not None and handle.uri in {given.uri for given in database.given.values()}:
            raise UnsupportedError(
                "a table that was named in connect() cannot be renamed",
                where=f"table {self.target.name}",
                remedy='register another name for it, or connect with {"name": path}',
            )
        if database is not None and database.folder is not None:
            database.folder.rename(self.target.name, name, handle.uri)
        else:
            folder, _ = split_place(handle.uri)
            rename_table(handle.uri, join_uri(folder or ".", name + TABLE_SUFFIX), handle.storage_options)
        session.catalog.refresh(force=True)
        return nothing()

    def _add(self, session: ChangeSession, table: TargetTable, place: int) -> None:
        may_exist = self.action.says(place, "if", "not", "exists")
        place += 3 if may_exist else 0
        if len(self.action) < place + 2 or _has_constraint(self.action):
            raise self._unsupported()
        name = self.action.tokens[place].name
        default = self.action.find("default", start=place)
        end = len(self.action) if default < 0 else default
        kind = self.action.part(place + 1, end).text.strip()
        if name is None or not kind or self.action.text_at(place + 1) == ".":
            raise self._unsupported()
        if may_exist and any(folded(column.name) == folded(name) for column in table.columns):
            return
        value = "NULL" if default < 0 else self.action.part(default + 1).text
        type_ = self._arrow(session, kind)
        if default < 0:
            table.dataset.add_columns(pa.field(name, type_))
        else:
            table.dataset.add_columns({name: f"CAST(({value}) AS {kind})"})

    def _drop(self, table: TargetTable, place: int) -> None:
        may_miss = self.action.says(place, "if", "exists")
        name = self.action.tokens[place + (2 if may_miss else 0)].name or ""
        if may_miss and all(folded(column.name) != folded(name) for column in table.columns):
            return
        table.dataset.drop_columns([table.column(name).name])

    def _change(self, session: ChangeSession, verb: str | None, place: int) -> dict[str, object]:
        """Return what `alter_columns` is asked for."""
        action = self.action
        if verb == "rename" and action.word(place) == "to" and place + 2 == len(action):
            return {"name": action.tokens[place + 1].name}
        if verb == "alter" and action.says(place, "set", "not", "null"):
            return {"nullable": False}
        if verb == "alter" and action.says(place, "drop", "not", "null"):
            return {"nullable": True}
        place += 2 if action.says(place, "set", "data") else 0
        if verb == "alter" and action.word(place) == "type" and action.find("using", start=place) < 0:
            return {"data_type": self._arrow(session, action.part(place + 1).text.strip())}
        raise self._unsupported()

    def _arrow(self, session: ChangeSession, kind: str) -> pa.DataType:
        rows = session.relation(f"SELECT CAST(NULL AS {kind}) AS c WHERE false", {})
        return relation_reader(rows, 1).schema.field(0).type

    def _unsupported(self) -> UnsupportedError:
        words = {token.word for token in self.action.tokens}
        return UnsupportedError(
            "this form of ALTER TABLE is not supported on Lance tables",
            where=f"table {self.target.name}",
            expected="ADD, DROP or RENAME of a column, ALTER of its TYPE or NOT NULL, or RENAME TO",
            found=self.action.text.strip(),
            remedy=next((remedy for known, remedy in _REMEDIES if known <= words), None),
        )


def _has_constraint(action: Clauses) -> bool:
    """Return whether a new column has more than a type and DEFAULT."""
    outer = [place for place, depth in enumerate(action.depths) if depth == 0]
    return any(action.word(place) in _REFUSED or action.says(place, "not", "null") for place in outer)
