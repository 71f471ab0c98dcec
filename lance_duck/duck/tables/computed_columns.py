"""A table with computed columns. The values are computed from row addresses.

Generated statements read these columns under names that users cannot guess. DuckDB's filters on them become filters on
addresses. A scan then only reads matching rows.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.table import DuckTable, Restriction
from lance_duck.duck.tables.text_functions import search_of
from lance_duck.duck.tables.text_request import TextRequest
from lance_duck.errors import InternalError, InvalidInputError
from lance_duck.forks import Lock
from lance_duck.scan.duckdb.nodes import predicate_from_node
from lance_duck.scan.predicate.evaluate import mask
from lance_duck.scan.predicate.tree import And, Compare, ConstantCondition, In, IsNull, Not, Or, Predicate
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.text.matches import Matches
from lance_duck.scan.text.query.tree import MatchQuery, PhraseQuery

TOKEN: Final = secrets.token_hex(8)
"""Part of the name of each computed column."""
Addresses = NDArray[np.uint64]


class ComputedColumn(ABC):
    """A column computed from the addresses or ids of rows.

    Args:
        name: Its name.
        type_: Its Arrow type.
        source: The column from which the values are computed: `_rowaddr` or `_rowid`.
    """

    def __init__(self, name: str, type_: pa.DataType, source: str = ROW_ADDRESS) -> None:
        self.field = pa.field(name, type_)
        self.source = source

    @abstractmethod
    def values(self, dataset: LanceDataset, addresses: pa.Array) -> pa.Array:
        """Return the values of rows, without nulls.

        Args:
            dataset: The version that is read.
            addresses: uint64 row addresses, or row ids if the column's source is `_rowid`.
        """

    @abstractmethod
    def condition(self, dataset: LanceDataset, leaf: Predicate) -> Predicate:
        """Translate a condition on this column to a condition on its source."""


class AddressColumn(ComputedColumn):
    """The address itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name, pa.uint64())

    def values(self, dataset: LanceDataset, addresses: pa.Array) -> pa.Array:
        """See `ComputedColumn`."""
        return addresses

    def condition(self, dataset: LanceDataset, leaf: Predicate) -> Predicate:
        """See `ComputedColumn`."""
        path = (ROW_ADDRESS,)
        match leaf:
            case Compare(op, _, value):
                return Compare(op, path, value)
            case In(_, values):
                return In(path, values)
            case IsNull():
                return ConstantCondition(False)
        raise InternalError("a condition on row addresses has an unknown kind", found=str(leaf))


class TextMatches:
    """The rows that match a query. The search runs once per version. Thread-safe.

    Args:
        query: The query.
    """

    def __init__(self, query: MatchQuery | PhraseQuery) -> None:
        self.query = query
        self._lock = Lock()
        self._last: tuple[LanceDataset, Matches] | None = None

    def of(self, dataset: LanceDataset) -> Matches:
        """Return the addresses of the matching rows in a version."""
        with self._lock:
            if self._last is None or self._last[0] is not dataset:
                self._last = dataset, search_of(dataset, self.query).matches()
            return self._last[1]


class MatchColumn(ComputedColumn):
    """A column that contains whether a row matches a query, or the row's score.

    Args:
        name: Its name.
        matches: The rows that match.
        is_score: Whether the column contains scores, with 0 for rows that do not match.
    """

    def __init__(self, name: str, matches: TextMatches, *, is_score: bool) -> None:
        super().__init__(name, pa.float32() if is_score else pa.bool_())
        self.matches = matches
        self._is_score = is_score

    def values(self, dataset: LanceDataset, addresses: pa.Array) -> pa.Array:
        """See `ComputedColumn`."""
        matches = self.matches.of(dataset)
        targets = addresses.to_numpy()
        if not len(matches):
            return pa.array(np.zeros(len(targets), np.float32 if self._is_score else np.bool_))
        places = np.minimum(np.searchsorted(matches.names, targets), len(matches) - 1)
        present = matches.names[places] == targets
        return pa.array(np.where(present, matches.scores[places], np.float32(0)) if self._is_score else present)

    def condition(self, dataset: LanceDataset, leaf: Predicate) -> Predicate:
        """See `ComputedColumn`. The predicate is evaluated for each match, and once for all other rows."""
        matches = self.matches.of(dataset)
        values = (
            np.append(matches.scores, np.float32(0)) if self._is_score else np.arange(len(matches) + 1) < len(matches)
        )
        held = mask(leaf, {self.field.name: pa.array(values)}, len(values)).to_numpy(zero_copy_only=False)
        rows = In((ROW_ADDRESS,), pa.array(matches.names[held[:-1] != held[-1]]))
        return Not(rows) if held[-1] else rows


@dataclass(frozen=True)
class AskedColumn:
    """Description of a `MatchColumn`.

    Attributes:
        name: Its name.
        request: The serialized `TextRequest`.
        words: The query.
        is_score: Whether the column contains scores.
    """

    name: str
    request: str
    words: str
    is_score: bool


@dataclass(frozen=True)
class AskedColumns:
    """Computed columns and the version of a table, which a view stores as text.

    Attributes:
        columns: The columns.
        version: Arguments of `VersionChoice`.
        identifiers: Names of row identifiers to add as columns.
    """

    columns: Sequence[AskedColumn]
    version: Mapping[str, str]
    identifiers: Sequence[str] = ()

    @classmethod
    def of(cls, text: str) -> AskedColumns:
        """Parse the text.

        Raises:
            InvalidInputError: The text is invalid.
        """
        try:
            content = json.loads(text)
            columns = [AskedColumn(*column) for column in content["columns"]]
            return cls(columns, dict(content["version"]), list(content.get("identifiers", ())))
        except (ValueError, TypeError, LookupError) as error:
            raise InvalidInputError(
                "an internal function of lance_duck was called by a query", found=text[:40]
            ) from error

    @property
    def text(self) -> str:
        """The serialized form."""
        content = {"columns": [astuple(column) for column in self.columns], "version": self.version}
        content |= {"identifiers": self.identifiers} if self.identifiers else {}
        return json.dumps(content, ensure_ascii=False)

    def computed(self, matches: Callable[[MatchQuery | PhraseQuery], TextMatches]) -> list[MatchColumn]:
        """Return the columns.

        Args:
            matches: Returns the rows that match a query.

        Raises:
            InvalidInputError: A query is invalid.
        """
        queries = (TextRequest.of(column.request).query(column.words, "") for column in self.columns)
        pairs = zip(self.columns, queries, strict=True)
        return [MatchColumn(each.name, matches(query), is_score=each.is_score) for each, query in pairs]


class TableWithColumns(DuckTable):
    """A table with computed columns after its own columns.

    Args:
        resolve: See `DuckTable`.
        computed: The columns.
        options: See `DuckTable`.
    """

    def __init__(self, resolve: Callable[[], LanceDataset], computed: Sequence[ComputedColumn], **options: Any) -> None:
        self.computed = {column.field.name: column for column in computed}
        super().__init__(resolve, **options)

    def widened(self, columns: Sequence[ComputedColumn]) -> TableWithColumns:
        """Return the version that was read last, with additional columns."""
        return with_columns(self.dataset, [*self.computed.values(), *columns], self._restriction)

    def restricted(self, restriction: Restriction) -> TableWithColumns:
        """See `DuckTable.restricted`."""
        return with_columns(self.dataset, list(self.computed.values()), restriction)

    @property
    def queries(self) -> Iterator[MatchQuery | PhraseQuery]:
        """The distinct full-text queries behind its columns."""
        matches = (column.matches for column in self.computed.values() if isinstance(column, MatchColumn))
        return iter(dict.fromkeys(each.query for each in matches))

    def accepts(self, predicate: Any) -> bool:
        """See `ScanSource.accepts`. The scan always applies conditions on computed columns."""
        if not self._is_computed(predicate):
            return super().accepts(predicate)
        self._offered(predicate, accepted=True)
        return True

    def filtered_schema(self, dataset: LanceDataset) -> pa.Schema:
        """See `DuckTable.filtered_schema`."""
        return self._widened(super().filtered_schema(dataset))

    def stored(self, dataset: LanceDataset, predicate: Predicate) -> Predicate:
        """See `DuckTable.stored`."""
        match predicate:
            case And(operands) | Or(operands):
                return type(predicate)(tuple(self.stored(dataset, operand) for operand in operands))
            case Not(operand):
                return Not(self.stored(dataset, operand))
        column = next((self.computed[name] for name in predicate.columns() if name in self.computed), None)
        return predicate if column is None else column.condition(dataset, predicate)

    def explained(self, parts: Sequence[Predicate] = ()) -> str:
        """See `DuckTable.explained`. Includes the searches."""
        searched = {name for name, column in self.computed.items() if isinstance(column, MatchColumn)}
        pushed = [self.stored(self.dataset, part) for part in parts if searched.isdisjoint(part.columns())]
        plans = []
        for query in self.queries:
            lines = self.dataset.scan(columns=[], full_text_query=query).explain_plan().splitlines()
            plans += [line for line in lines[1:] if not line.startswith("  columns:")]
        used = "rows that match alone are read" if len(pushed) < len(parts) else "columns of the scan"
        plans += [f"  match: {used}"] if plans else []
        return super().explained(pushed) + "".join(f"{line}\n" for line in plans)

    def _is_computed(self, node: Any) -> bool:
        predicate = predicate_from_node(node, self.filtered_schema(self.dataset))
        return predicate is not None and self.computed.keys() >= set(predicate.columns())

    def _schema(self, dataset: LanceDataset) -> pa.Schema:
        return self._widened(super()._schema(dataset))

    def _widened(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([*schema, *(column.field for column in self.computed.values())], schema.metadata)

    def _reader(
        self, dataset: LanceDataset, output: pa.Schema, predicate: Predicate | None, *, any_form: bool
    ) -> pa.RecordBatchReader:
        if self.computed.keys().isdisjoint(output.names):
            return super()._reader(dataset, output, predicate, any_form=any_form)
        stored_fields = [field for field in output if field.name not in self.computed]
        sources = dict.fromkeys(self.computed[name].source for name in output.names if name in self.computed)
        stored = pa.schema([*stored_fields, *(pa.field(name, pa.uint64()) for name in sources)])
        inner = super()._reader(dataset, stored, predicate, any_form=any_form)
        named = {field.name: field for field in inner.schema}
        schema = pa.schema([named.get(field.name, field) for field in output])
        return pa.RecordBatchReader.from_batches(schema, self._computed(dataset, inner, schema))

    def _computed(
        self, dataset: LanceDataset, batches: Iterable[pa.RecordBatch], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [
                batch.column(name)
                if (computed := self.computed.get(name)) is None
                else computed.values(dataset, batch.column(computed.source))
                for name in schema.names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def with_columns(
    dataset: LanceDataset, columns: Sequence[ComputedColumn], restriction: Restriction | None = None
) -> TableWithColumns:
    """Return a table version with computed columns, for generated statements."""
    return TableWithColumns(lambda: dataset, columns, pinned=True, hidden=False, restriction=restriction)
