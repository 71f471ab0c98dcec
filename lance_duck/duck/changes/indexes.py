"""CREATE INDEX and DROP INDEX, implemented by `create_index`, `create_scalar_index` and `drop_index`.

    CREATE [OR REPLACE] INDEX [IF NOT EXISTS] [name] ON target [USING kind] (column) [WITH (option = value, …)]
    CREATE [OR REPLACE] INDEX [IF NOT EXISTS] [name] ON target (column) [USING kind] [WITH (option = value, …)]
    DROP INDEX [IF EXISTS] name ON target

Options are the parameters of these methods. `metric_type` and `distance_type` are aliases of `metric`. `params` is a
JSON object with more options. The kind defaults to BTREE. For vector columns, the statement must specify the kind.
UNIQUE is rejected, because indexes do not enforce uniqueness. `upkeep.statements` reads the other statements about
indexes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.tables.column_path import ColumnPath
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.errors import IndexExistsError, InvalidInputError, UnsupportedError
from lance_duck.index.inverted.settings import INVERTED_PARAMETERS
from lance_duck.index.vector.layout import KINDS as VECTOR_KINDS
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.verbs.indexes.rows import column_path
from lance_duck.verbs.indexes.vector import is_vector_kind

_DEFAULT_KIND: Final = "BTREE"
_COMMON: Final = ("replace", "train", "commit_message", "params")
_VECTOR: Final = (
    *("metric", "num_partitions", "target_partition_size", "num_sub_vectors", "num_bits", "m", "ef_construction"),
    *("max_level", "sample_rate", "max_iters", "ivf_centroids", "pq_codebook", "index_file_version"),
)
_JSON: Final = ("path", "target_index_type", "target_index_parameters")
_SCALAR: Final = (
    "zone_size",
    "rows_per_zone",
    "number_of_items",
    "probability",
    "page_size",
    *_JSON,
    *INVERTED_PARAMETERS,
)
_NO_LIMIT: Final = "max_token_length"  # NULL removes the limit
_ALIASES: Final = {
    **dict.fromkeys(("metric_type", "distance_type"), "metric"),
    **{f"hnsw_{name}": name for name in ("m", "ef_construction", "max_level")},
    "max_iterations": "max_iters",
}
_GRAMMAR: Final = "CREATE INDEX name ON table [USING kind] (column) [WITH (option = value, …)]"


@dataclass(frozen=True)
class CreateIndexStatement(TableStatement):
    """A CREATE INDEX.

    Attributes:
        name: Its name. Defaults to a name derived from the column.
        unique: UNIQUE.
        replaces: OR REPLACE.
        may_exist: IF NOT EXISTS.
        definition: The clauses after the table.
    """

    name: str | None
    unique: bool
    replaces: bool
    may_exist: bool
    definition: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CreateIndexStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        replaces = body.says(1, "or", "replace")
        place = 3 if replaces else 1
        unique = body.word(place) == "unique"
        place += unique
        if head.verb != "create" or body.word(place) != "index":
            return None
        may_exist = body.says(place + 1, "if", "not", "exists")
        place += 4 if may_exist else 1
        is_named = body.word(place) != "on" or body.word(place + 1) == "on"
        name = body.tokens[place].name if is_named and place < len(body) else None
        place += is_named
        target = TableName.at(body, place + 1) if body.word(place) == "on" else None
        if target is None or (is_named and name is None):
            return None
        return cls(target, name, unique, replaces, may_exist, body.part(target.after))

    @property
    def is_only_ours(self) -> bool:
        """Whether the index has no name, or its kind follows the column. DuckDB 1 does not have OR REPLACE."""
        return self.name is None or self.definition.find("using") > 0 or (self.replaces and not SPEAKS_SOURCE)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Create the index."""
        dataset = session.handle(self.target).current()
        kind, path, options = self._parts()
        column = path.index_path(dataset.handle.snapshot.schema, self.subject)
        if kind is None:
            kind = self._default_kind(dataset, column)
        if self.unique:
            raise UnsupportedError(
                "Lance indexes cannot enforce UNIQUE", where=f"table {self.target.name}", remedy="leave out UNIQUE"
            )
        session.explain_words(f"An index of kind {kind} would be made over {column}. Nothing was written.")
        session.refuse_in_transaction("CREATE INDEX")
        names = [*_COMMON, *(_VECTOR if is_vector_kind(kind) else _SCALAR)]
        values = _with_params(options.values(session, names, _ALIASES if is_vector_kind(kind) else {}), names)
        if not (self.may_exist and _has_index(dataset, self.name)):
            try:
                self._create(dataset, kind, column, values)
            except IndexExistsError as error:
                raise IndexExistsError(
                    "the table has an index of this name" if self.name is None else f"index {self.name!r} exists",
                    where=f"table {self.target.name}",
                    remedy="CREATE OR REPLACE INDEX rebuilds it, CREATE INDEX IF NOT EXISTS keeps it",
                ) from error
        return nothing("Count", "BIGINT")

    def _create(self, dataset: LanceDataset, kind: str, column: str, values: dict[str, Any]) -> None:
        replace = self.replaces or bool(values.pop("replace", False))
        parameters = {name: value for name, value in values.items() if value is not None or name == _NO_LIMIT}
        if is_vector_kind(kind):
            dataset.create_index(column, kind, self.name, replace=replace, **parameters)
        else:
            dataset.create_scalar_index(column, kind, self.name, replace=replace, **parameters)

    def _default_kind(self, dataset: LanceDataset, column: str) -> str:
        schema = dataset.handle.snapshot.schema
        if isinstance(schema.by_path(column_path(schema, column)).storage_type, pa.FixedSizeListType):
            raise InvalidInputError(
                "CREATE INDEX on a vector column needs an index kind",
                where=f"table {self.target.name}",
                expected=f"USING one of {', '.join(VECTOR_KINDS)}",
                found=f"column {column}",
            )
        return _DEFAULT_KIND

    def _parts(self) -> tuple[str | None, ColumnPath, Options]:
        """Return the kind, the path of the column, and the options."""
        definition = self.definition
        place, kind = _kind(definition, 0)
        close = definition.closer(place) if definition.text_at(place) == "(" else len(definition)
        if close >= len(definition):
            raise self._misread(place)
        path = _column(definition.part(place + 1, close))
        place = close + 1
        if kind is None:
            place, kind = _kind(definition, place)
        options = Options.of(definition.part(place), f"CREATE INDEX on {self.target.name}")
        return kind, path, options

    def _misread(self, place: int) -> InvalidInputError:
        rest = self.definition.part(place).text.strip() or "the end of the statement"
        return InvalidInputError("invalid syntax of CREATE INDEX", expected=_GRAMMAR, found=rest)


@dataclass(frozen=True)
class DropIndexStatement(TableStatement):
    """A DROP INDEX.

    Attributes:
        name: Its name.
        may_miss: IF EXISTS.
    """

    is_only_ours: ClassVar[bool] = True

    name: str
    may_miss: bool

    @classmethod
    def read(cls, head: StatementHead) -> DropIndexStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        may_miss = body.says(2, "if", "exists")
        place = 4 if may_miss else 2
        name = body.tokens[place].name if body.says(0, "drop", "index") and place < len(body) else None
        target = TableName.at(body, place + 2) if body.word(place + 1) == "on" else None
        if name is None or target is None or target.after < len(body):
            return None
        return cls(target, name, may_miss)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Drop the index."""
        dataset = session.handle(self.target).current()
        session.explain_words(f"The index {self.name} would be dropped. Nothing was written.")
        session.refuse_in_transaction("DROP INDEX")
        if not (self.may_miss and not _has_index(dataset, self.name)):
            dataset.drop_index(self.name)
        return nothing()


def _kind(definition: Clauses, place: int) -> tuple[int, str | None]:
    """Read an optional USING clause. Returns the position after it, and the index kind."""
    if definition.word(place) != "using" or place + 1 >= len(definition):
        return place, None
    name = definition.tokens[place + 1].name
    return (place, None) if name is None else (place + 2, name.upper())


def _column(columns: Clauses) -> ColumnPath:
    """Read the column path in parentheses."""
    path = ColumnPath.at(columns, 0)
    if path is None or path.after != len(columns):
        raise UnsupportedError(
            "an index covers one column", where="CREATE INDEX", expected="one column", found=columns.text.strip()
        )
    return path


def _with_params(values: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the options, merged with the JSON object in `params`."""
    text = values.pop("params", None)
    if text is None:
        return values
    try:
        more = json.loads(text)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("invalid index parameters", expected="JSON", found=str(error)) from error
    if not isinstance(more, Mapping):
        raise InvalidInputError("invalid index parameters", expected="a JSON object", found=str(text))
    more = {_ALIASES.get(name, name): value for name, value in more.items()}
    unknown = next((name for name in more if name not in names or name == "params"), None)
    if unknown is not None:
        raise InvalidInputError(
            f"unknown option {unknown!r}", where="invalid index parameters", expected=", ".join(names)
        )
    return {**more, **values}


def _has_index(dataset: LanceDataset, name: str | None) -> bool:
    return any(index.name == name for index in dataset.describe_indices())
