"""OPTIMIZE, VACUUM and CHECKPOINT, which end in `optimize.compact_files`, `cleanup_old_versions` and both.

    OPTIMIZE [TABLE] target [WITH (option = value, …)]
    VACUUM [LANCE] target [WITH (option = value, …)]
    VACUUM ANALYZE target | ANALYZE target
    CHECKPOINT target

Options are the arguments of the verbs, and dry_run; `retain` and `retain_n_versions` mean `retain_versions`, and
`older_than_seconds` is `older_than` as a number. CHECKPOINT compacts, brings indexes up to date, and cleans up.
ANALYZE does nothing: statistics of a Lance table are in its files and indexes, which writers keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, nothing, operated
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.upkeep.operations import (
    CLEANUP_ALIASES,
    CLEANUP_OPTIONS,
    COMPACTION_OPTIONS,
    cleaned_up,
    compacted,
    indexes_optimized,
)
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead


@dataclass(frozen=True)
class OptimizeStatement(TableStatement):
    """An OPTIMIZE.

    Attributes:
        options: What follows the table.
    """

    is_only_ours: ClassVar[bool] = True

    options: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> OptimizeStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        target = TableName.at(body, 2) if body.word(1) == "table" else None
        target = target or TableName.at(body, 1)
        return None if head.verb != "optimize" or target is None else cls(target, body.part(target.after))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Compact the table."""
        dataset = session.handle(self.target).current()
        options = Options.of(self.options, f"OPTIMIZE {self.target.name}")
        session.explain_words("Small fragments would be joined; dry_run = true says which. Nothing was written.")
        session.refuse_in_transaction("OPTIMIZE")
        return operated([compacted(dataset, options.values(session, COMPACTION_OPTIONS))])


@dataclass(frozen=True)
class VacuumStatement(TableStatement):
    """A VACUUM.

    Attributes:
        options: What follows the table.
    """

    options: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> VacuumStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 1
        place += _is_option(body, place, "lance")
        target = TableName.at(body, place)
        is_analyze = _is_option(body, place, "analyze")
        return None if head.verb != "vacuum" or target is None or is_analyze else cls(target, body.part(target.after))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Remove old versions."""
        dataset = session.handle(self.target).current()
        options = Options.of(self.options, f"VACUUM {self.target.name}")
        session.explain_words("Old versions would be removed; dry_run = true says how many. Nothing was removed.")
        session.refuse_in_transaction("VACUUM")
        return operated([cleaned_up(dataset, options.values(session, CLEANUP_OPTIONS, CLEANUP_ALIASES))])


@dataclass(frozen=True)
class AnalyzeStatement(TableStatement):
    """An ANALYZE of a table, perhaps after VACUUM."""

    writes: ClassVar[bool] = False

    @classmethod
    def read(cls, head: StatementHead) -> AnalyzeStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 1
        if head.verb == "vacuum":
            place += _is_option(body, place, "lance")
            place += 1 if _is_option(body, place, "analyze") else len(body)
        target = TableName.at(body, place)
        return None if target is None else cls(target)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Do nothing."""
        session.explain_words("Statistics of a Lance table are kept by those who write it. Nothing would be done.")
        return nothing()


@dataclass(frozen=True)
class CheckpointStatement(TableStatement):
    """A CHECKPOINT of a table."""

    @classmethod
    def read(cls, head: StatementHead) -> CheckpointStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        target = TableName.at(body, 1) if head.verb == "checkpoint" else None
        return None if target is None or target.after < len(body) else cls(target)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Compact the table, bring its indexes up to date, and remove old versions."""
        dataset = session.handle(self.target).current()
        session.explain_words("The table would be compacted, indexed and cleaned up. Nothing was written.")
        session.refuse_in_transaction("CHECKPOINT")
        return operated([compacted(dataset, {}), indexes_optimized(dataset, {}), cleaned_up(dataset, {})])


def _is_option(body: Clauses, place: int, word: str) -> bool:
    """Return whether a word stands before a table, and is not the name of one."""
    return body.word(place) == word and TableName.at(body, place + 1) is not None and not _ends(body, place)


def _ends(body: Clauses, place: int) -> bool:
    """Return whether the word at a place is the last part of what a statement is about."""
    return body.text_at(place + 1) in ("", ".", "(") or body.word(place + 1) == "with"
