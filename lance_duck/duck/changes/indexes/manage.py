"""SHOW INDEXES, ALTER INDEX … OPTIMIZE and REINDEX, which end in `describe_indices` and `optimize.optimize_indices`.

    SHOW INDEXES | INDEX ON | FROM | IN target
    ALTER INDEX name ON target OPTIMIZE [WITH (mode = 'append' | 'merge' | 'retrain', num_indices_to_merge = n,
                                        memory_limit = '256MB')]
    REINDEX name ON target [RETRAIN] | REINDEX [TABLE] target [RETRAIN]

Mode append puts the rows that no segment covers into a segment of their own, merge joins it with others, and retrain
builds the index anew. ALTER INDEX … RENAME is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from lance_duck.arguments import unknown_value
from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, nothing, operated
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.tables.facts import INDEX_COLUMNS, indexes, rows_as_sql
from lance_duck.errors import InvalidInputError, UnsupportedError

OPTIMIZED: Final = "optimize_index"
_MODES: Final = ("append", "merge", "retrain")


@dataclass(frozen=True)
class ShowIndexesStatement(TableStatement):
    """A SHOW INDEXES."""

    writes: ClassVar[bool] = False
    is_only_ours: ClassVar[bool] = True

    @classmethod
    def read(cls, head: StatementHead) -> ShowIndexesStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        if head.verb != "show" or body.word(1) not in ("indexes", "index") or body.word(2) not in ("on", "from", "in"):
            return None
        target = TableName.at(body, 3)
        return None if target is None or target.after < len(body) else cls(target)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Describe the indexes, by name."""
        session.explain_words("The indexes would be described.")
        return ChangeResult(rows_as_sql(INDEX_COLUMNS, indexes(session.dataset(self.target))))


@dataclass(frozen=True)
class AlterIndexStatement(TableStatement):
    """An ALTER INDEX.

    Attributes:
        name: Name of the index.
        action: What follows the table.
    """

    parses: ClassVar[bool] = False

    name: str
    action: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> AlterIndexStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 4 if body.says(2, "if", "exists") else 2
        name = body.tokens[place].name if body.says(0, "alter", "index") and place < len(body) else None
        target = TableName.at(body, place + 2) if body.word(place + 1) == "on" else None
        return None if name is None or target is None else cls(target, name, body.part(target.after))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Bring the index up to date."""
        if self.action.word(0) != "optimize":
            raise UnsupportedError(
                "this form of ALTER INDEX",
                where=self.action.text.strip(),
                expected="OPTIMIZE [WITH (mode = …)]",
                remedy="an index keeps its name: DROP INDEX, and CREATE INDEX with another one",
            )
        dataset = session.handle(self.target).current()
        options = Options.of(self.action.part(1), f"ALTER INDEX {self.name}")
        session.explain_words(f"The index {self.name} would be brought up to date. Nothing was written.")
        session.refuse_in_transaction("ALTER INDEX")
        values = options.values(session, ("mode", "num_indices_to_merge", "memory_limit"))
        mode, merged = values.get("mode"), values.get("num_indices_to_merge")
        if mode is not None and mode not in _MODES:
            raise unknown_value("mode of ALTER INDEX", mode, _MODES)
        dataset.optimize.optimize_indices(
            index_names=[self.name],
            num_indices_to_merge=0 if mode == "append" else merged,
            retrain=mode == "retrain",
            memory_limit=values.get("memory_limit"),
        )
        return operated([(OPTIMIZED, dataset.uri, coverage(dataset, [self.name]))])


@dataclass(frozen=True)
class ReindexStatement(TableStatement):
    """A REINDEX.

    Attributes:
        name: Name of the index; None: all of the table.
        retrain: RETRAIN.
        rest: What follows, which is nothing in a sound statement.
    """

    is_only_ours: ClassVar[bool] = True

    name: str | None
    retrain: bool
    rest: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> ReindexStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 2 if body.word(1) in ("table", "index") and len(body) > 2 else 1
        name = body.tokens[place].name if body.word(place + 1) == "on" else None
        target = TableName.at(body, place + 2 if name is not None else place)
        if head.verb != "reindex" or target is None:
            return None
        retrain = body.word(target.after) == "retrain"
        return cls(target, name, retrain, body.part(target.after + retrain))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Bring the indexes up to date."""
        if self.rest.tokens:
            raise InvalidInputError(
                "end of REINDEX",
                where=f"table {self.target.name}",
                expected="RETRAIN or nothing",
                found=self.rest.text.strip(),
                remedy="ALTER INDEX name ON table OPTIMIZE WITH (…) takes options",
            )
        dataset = session.handle(self.target).current()
        session.explain_words("Indexes would be brought up to date. Nothing was written.")
        session.refuse_in_transaction("REINDEX")
        names = None if self.name is None else [self.name]
        dataset.optimize.optimize_indices(index_names=names, retrain=self.retrain)
        return nothing("Count", "BIGINT")


def coverage(dataset: LanceDataset, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Return how many rows each index covers, and how many segments it has.

    Args:
        dataset: The table.
        names: Names of the indexes; None: all.
    """
    return {
        "version": dataset.version,
        "indexes": {
            index.name: {"rows_indexed": index.num_rows_indexed, "segments": len(index.segments)}
            for index in dataset.describe_indices()
            if names is None or index.name in names
        },
    }
