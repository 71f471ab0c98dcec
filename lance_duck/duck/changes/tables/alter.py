"""ALTER TABLE, implemented by `add_columns`, `drop_columns`, `alter_columns` and `rename_table`.

    ALTER TABLE [IF EXISTS] t
        ADD [COLUMN] [IF NOT EXISTS] c type [DEFAULT e] [NOT NULL]
        DROP [COLUMN] [IF EXISTS] c [CASCADE | RESTRICT]
        RENAME [COLUMN] c TO d
        ALTER [COLUMN] c [SET [DATA]] TYPE type [USING e] | SET NOT NULL | DROP NOT NULL
        ALTER [COLUMN] c SET DEFAULT e | DROP DEFAULT
        RENAME TO u

c is a column, or a nested field (see `column_path`). ADD sets existing rows to DEFAULT, and stores it for later rows.
The DEFAULT of a nested field is not stored. DEFAULT cannot contain columns, as in native tables. A table is named after
its folder. RENAME TO therefore renames the folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.rows.defaults import DEFAULT, default_column, refuse_sequences
from lance_duck.duck.changes.rows.shadow import SHADOW, temporary_table
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import (
    TableStatement,
    dataset_to_alter,
    name_after_if_exists,
    show_columns,
)
from lance_duck.duck.changes.tables.altered_fields import (
    dropped_field,
    is_written_whole,
    nested_defaults,
    new_field,
    null_field,
    renamed_field,
)
from lance_duck.duck.changes.tables.altered_types import (
    ColumnComputation,
    casts_alone,
    casts_equally,
    named_indexes,
)
from lance_duck.duck.changes.tables.column_path import ColumnPath, lance_path, refuse_ambiguous_names
from lance_duck.duck.databases.database_schema import DatabaseSchema, check_table_name
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import AlreadyExistsError, UnsupportedError
from lance_duck.namespaces.names import TABLE, check_new
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.store.uri import join_uri, split_place
from lance_duck.verbs.merge.primary_key import checked_key
from lance_duck.verbs.versions.rename import rename_table
from lance_duck.wire.paths import TABLE_SUFFIX
from lance_duck.wire.schema_write import primary_key
from lance_duck.write.relations import refuse_enums, relation_reader

_REMEDIES: Final = (
    (frozenset({"primary", "key"}), "declare PRIMARY KEY in CREATE TABLE, or name the keys in ON CONFLICT (column)"),
    (frozenset({"unique"}), "name the keys in ON CONFLICT (column)"),
    (frozenset({"not", "null", "add"}), "ADD COLUMN without NOT NULL, UPDATE it, then ALTER COLUMN … SET NOT NULL"),
    (frozenset({"using"}), "ALTER COLUMN … TYPE of the field without USING, then UPDATE it"),
    (frozenset({"check"}), "check the values with WHERE in the statements that write"),
)
"""Alternatives to unsupported clauses, by the words of the clause."""
_DEPENDENTS: Final = frozenset({"cascade", "restrict"})
"""Keywords for dependent objects. With either keyword, a column's indexes are dropped."""
_REFUSED: Final = frozenset({"check", "primary", "unique", "references", "generated", "collate"})


@dataclass(frozen=True)
class AlterStatement(TableStatement):
    """An ALTER TABLE.

    Attributes:
        action: The clauses after the table name.
    """

    action: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> AlterStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        target = name_after_if_exists(body, 2) if body.says(0, "alter", "table") else None
        return None if target is None else cls(target, body.part(target.after))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Change the columns, or the name."""
        session.explain_words("The columns or the name of the table would change. Nothing was written.")
        if self.action.says(0, "rename", "to"):
            return self._rename(session)
        dataset = dataset_to_alter(session, self.target)
        verb, place = self.action.word(0), 1 + (self.action.word(1) == "column")
        if verb == "add":
            self._add(session, dataset, place)
        elif verb == "drop":
            self._drop(session, dataset, place)
        elif verb == "rename":
            self._rename_column(dataset, place)
        elif verb == "alter":
            self._alter(session, dataset, place)
        else:
            raise self._unsupported()
        if session.block is None:
            session.catalog.refresh(force=True)
        show_columns(session, self.target)
        return nothing()

    def _rename(self, session: ChangeSession) -> ChangeResult:
        name = self.action.tokens[2].name if len(self.action) == 3 else None
        if name is None:
            raise self._unsupported()
        check_table_name(name)
        handle, schema = session.handle(self.target), session.schema_of(self.target)
        if schema is not None and schema.is_given(self.target.name):
            raise UnsupportedError(
                "a table that was passed to connect() by name cannot be renamed",
                where=f"table {self.target.name}",
                remedy='pass it to connect() under the new name: {"name": path}',
            )
        present = None if schema is None else schema.find(name)
        if present is not None and present is not handle:
            raise AlreadyExistsError(
                "another table has this name",
                where=present.uri,
                found=f"names that differ only by case are one name in SQL: {name}",
                remedy="choose another name, or drop the existing table",
            )
        if schema is not None and schema.folder is not None:
            if schema.folder.parts:
                check_new((*schema.folder.parts, name), TABLE)
            if session.catalog.objects(schema).find(schema, name, ("view",)) is not None:
                raise AlreadyExistsError(f'View with name "{name}" already exists!', remedy="DROP VIEW first")
        if schema is not None and self._stored_name(session, schema) == name:
            return nothing()
        if session.transaction is not None and schema is not None:
            session.transaction.rename_table(schema, self.target.name, name)
            return nothing()
        session.refuse_in_transaction("RENAME of a path")
        if schema is not None and schema.folder is not None:
            schema.folder.rename(schema.stored_name(self.target.name), name, handle.uri)
        else:
            folder, _ = split_place(handle.uri)
            rename_table(handle.uri, join_uri(folder or ".", name + TABLE_SUFFIX), handle.storage_options)
        session.catalog.refresh(force=True)
        return nothing()

    def _stored_name(self, session: ChangeSession, schema: DatabaseSchema) -> str:
        """Return the stored spelling of the table's name."""
        drafts = None if session.transaction is None else session.transaction.drafts
        return schema.stored_name(self.target.name) if drafts is None else drafts.stored_name(schema, self.target.name)

    def _path(self, place: int) -> ColumnPath:
        path = ColumnPath.at(self.action, place)
        if path is None:
            raise self._unsupported()
        return path

    def _add(self, session: ChangeSession, dataset: LanceDataset, place: int) -> None:
        may_exist = self.action.says(place, "if", "not", "exists")
        path = self._path(place + (3 if may_exist else 0))
        required = self.action.find("not", "null", start=path.after)
        default = self.action.find("default", start=path.after)
        ends = [p for p in (default, required) if p >= 0] or [
            len(self.action) - (self.action.word(len(self.action) - 1) == "null")
        ]
        kind = self.action.part(path.after, min(ends)).text.strip()
        if not kind or _has_constraint(self.action) or (required >= 0 and len(path.names) > 1):
            raise self._unsupported()
        if not new_field(dataset.handle.snapshot.schema, path, self.subject, may_exist=may_exist):
            return
        type_ = _arrow(session, kind, ".".join(path.names))
        if required >= 0 or is_written_whole(dataset.handle.snapshot.schema, path, self.subject, default >= 0):
            end = required if required > default else None
            part = None if default < 0 else self.action.part(default + 1, end)
            text = None if part is None else self._default(session, path.name, kind, part.text)
            metadata = None if text is None or len(path.names) > 1 else {DEFAULT: text}
            computed = ColumnComputation(session, self.target, path, self.subject)
            computed.add(dataset, pa.field(path.name, type_, required < 0, metadata), kind, part)
            return
        if default < 0:
            dataset.add_columns(pa.schema([null_field(dataset, path, type_, self.subject)]))
            return
        expression = self.action.part(default + 1)
        refuse_ambiguous_names(dataset.handle.snapshot.schema, expression, self.subject)
        text = self._default(session, path.name, kind, expression.text)
        value = f"CAST(({expression.text}) AS {kind})"
        if len(path.names) > 1:
            dataset.add_columns(nested_defaults(dataset, path, value, self.subject))
        else:
            field = pa.field(path.name, type_, metadata={DEFAULT: text})
            dataset.add_columns(default_column(session, field, value), read_columns=[ROW_ADDRESS])

    def _default(self, session: ChangeSession, name: str, kind: str, value: str) -> str:
        """Return a DEFAULT as DuckDB describes it. DuckDB rejects columns, subqueries and aggregates."""
        refuse_sequences(value, f"{self.subject}, column {name}")
        with temporary_table(session, f"({quoted(name)} {kind} DEFAULT ({value}))", self.target.name):
            text = session.relation(f"DESCRIBE {SHADOW}", {}).fetchall()[0][4]
        return str(text)

    def _set_default(self, session: ChangeSession, dataset: LanceDataset, path: ColumnPath) -> bool:
        """Run SET DEFAULT or DROP DEFAULT. Returns False for other alterations."""
        action, place = self.action, path.after
        is_dropped = action.says(place, "drop", "default") and place + 2 == len(action)
        if not is_dropped and not action.says(place, "set", "default"):
            return False
        schema = dataset.handle.snapshot.schema
        column = path.field(schema, self.subject)
        if len(path.names) > 1:
            raise UnsupportedError(
                "setting a default value on a nested field is not yet supported",
                where=self.subject,
                found=".".join(path.names),
                remedy="set a DEFAULT of the whole column",
            )
        text = None
        if not is_dropped:
            kind = session.table(self.target, dataset).column(column.name).type
            text = self._default(session, column.name, kind, action.part(place + 2).text)
        if column.metadata.get(DEFAULT) != text:
            dataset.update_field_metadata({lance_path(schema, column): {DEFAULT: text}})
        return True

    def _drop(self, session: ChangeSession, dataset: LanceDataset, place: int) -> None:
        may_miss = self.action.says(place, "if", "exists")
        path = self._path(place + (2 if may_miss else 0))
        end = path.after + (self.action.word(path.after) in _DEPENDENTS)
        if end < len(self.action):
            raise self._unsupported()
        dropped = dropped_field(dataset.handle.snapshot.schema, path, self.subject, may_miss=may_miss)
        if dropped is None:
            return
        schema = dataset.handle.snapshot.schema
        key = [lance_path(schema, field) for field in primary_key(schema)] if session.checks_keys else []
        if any(path == dropped or path.startswith(f"{dropped}.") for path in key):
            what = "a column of a composite primary key" if len(key) > 1 else "a primary key column"
            raise self._refused(f"{what} cannot be dropped", ", ".join(key), "permits it")
        dataset.drop_columns([dropped])

    def _rename_column(self, dataset: LanceDataset, place: int) -> None:
        path = self._path(place)
        name = self.action.tokens[-1].name
        if self.action.word(path.after) != "to" or path.after + 2 != len(self.action) or name is None:
            raise self._unsupported()
        renamed = renamed_field(dataset.handle.snapshot.schema, path, name, self.subject)
        dataset.alter_columns({"path": renamed, "name": name})

    def _alter(self, session: ChangeSession, dataset: LanceDataset, place: int) -> None:
        action, path = self.action, self._path(place)
        if self._set_default(session, dataset, path):
            return
        place = path.after
        for words, nullable in ((("set", "not", "null"), False), (("drop", "not", "null"), True)):
            if action.says(place, *words) and place + len(words) == len(action):
                schema = dataset.handle.snapshot.schema
                field = path.field(schema, self.subject)
                dataset.alter_columns({"path": lance_path(schema, field), "nullable": nullable})
                return
        place += (action.word(place) == "set") + action.says(place, "set", "data")
        using = action.find("using", start=place)
        kind = action.part(place + 1, None if using < 0 else using)
        if action.word(place) != "type" or kind.find("collate") >= 0 or (using >= 0 and len(path.names) > 1):
            raise self._unsupported()
        with named_indexes(self.target, self.subject):
            self._alter_type(session, dataset, path, kind.text.strip(), None if using < 0 else action.part(using + 1))

    def _alter_type(
        self, session: ChangeSession, dataset: LanceDataset, path: ColumnPath, kind: str, using: Clauses | None
    ) -> None:
        schema = dataset.handle.snapshot.schema
        field = path.field(schema, self.subject)
        new = None if using is not None else _arrow(session, kind, ".".join(path.names))
        if new == field.to_arrow().type:
            return
        is_key = session.checks_keys and len(path.names) == 1 and field.name in checked_key(schema)
        old = field.storage_type
        casts = new is not None and (casts_alone if is_key else casts_equally)(schema, field, new)
        if is_key and casts and new is not None and pa.types.is_floating(old) and new.bit_width < old.bit_width:
            found = f"{old} to {new}"
            raise self._refused("a primary key cannot get a less precise type", found, "allows duplicate keys")
        if is_key and not casts:
            found = "USING" if new is None else f"{old} to {new}"
            raise self._refused("different primary keys could become equal", found, "allows duplicate keys")
        if casts:
            dataset.alter_columns({"path": lance_path(schema, field), "data_type": new})
        else:
            ColumnComputation(session, self.target, path, self.subject).change_type(dataset, kind, using)

    def _refused(self, what: str, found: str, effect: str) -> UnsupportedError:
        """Return the error for a change of the primary key that runs without the check of keys."""
        remedy = f"SET lance_check_primary_key = false {effect}"
        return UnsupportedError(what, where=self.subject, found=found, remedy=remedy)

    def _unsupported(self) -> UnsupportedError:
        words = {token.word for token in self.action.tokens}
        return UnsupportedError(
            "this form of ALTER TABLE is not supported on Lance tables",
            where=f"table {self.target.name}",
            expected="ADD, DROP or RENAME of a column, ALTER of its TYPE, NOT NULL or DEFAULT, or RENAME TO",
            found=self.action.text.strip(),
            remedy=next((remedy for known, remedy in _REMEDIES if known <= words), None),
        )


def _arrow(session: ChangeSession, kind: str, name: str) -> pa.DataType:
    """Return the Arrow type of a column that is declared with a DuckDB type.

    Raises:
        UnsupportedError: Lance tables cannot store the type.
    """
    rows = session.relation(f"SELECT CAST(NULL AS {kind}) AS {quoted(name)} WHERE false", {})
    schema = relation_reader(rows, 1).schema
    refuse_enums(schema)
    return schema.field(0).type


def _has_constraint(action: Clauses) -> bool:
    """Return whether a new column has more than a type, DEFAULT and NOT NULL."""
    outer = [place for place, depth in enumerate(action.depths) if depth == 0]
    return any(action.word(place) in _REFUSED for place in outer)
