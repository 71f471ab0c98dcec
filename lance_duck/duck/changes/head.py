"""The head of a statement that changes a table, and statements that are refused by their head.

[EXPLAIN [ANALYZE | (options)]] [WITH [RECURSIVE] name AS (…), …] verb …
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NoReturn

from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.errors import UnsupportedError

VERBS: Final = frozenset({"insert", "update", "delete", "merge", "truncate"})


@dataclass(frozen=True)
class StatementHead:
    """A statement, and what stands before its verb.

    Attributes:
        explain: The words of an EXPLAIN, or nothing.
        ctes: WITH and its tables, or nothing.
        body: The statement from its verb on.
    """

    explain: Clauses
    ctes: Clauses
    body: Clauses

    @property
    def verb(self) -> str | None:
        """The first word of the statement itself."""
        return self.body.word(0)

    @classmethod
    def of(cls, statement: Clauses) -> StatementHead:
        """Read the head of a statement."""
        after = _after_explain(statement)
        explain, rest = statement.part(0, after), statement.part(after)
        place = 0
        if rest.word(0) == "with":
            place = next((i for i in range(1, len(rest)) if _begins_body(rest, i)), 0)
        return cls(explain, rest.part(0, place), rest.part(place))


@dataclass(frozen=True)
class RefusedStatement:
    """A statement about a Lance table that is not supported: DuckDB would run it on the view that stands for the table.

        COMMENT ON TABLE t … | COMMENT ON COLUMN t.c …
        CREATE [UNIQUE] INDEX … ON t …
        COPY t [(columns)] FROM … | COPY … TO a name with .lance in it that is no path
        DROP VIEW [IF EXISTS] t | CREATE [OR REPLACE] VIEW lance.t
        VACUUM [ANALYZE] t | OPTIMIZE t

    Attributes:
        target: The table.
        what: The statement, as an error names it.
        remedy: What does the same.
    """

    target: TableName
    what: str
    remedy: str

    @classmethod
    def read(cls, head: StatementHead) -> RefusedStatement | None:
        """Read the clauses; None if the statement is none of these."""
        body, verb = head.body, head.verb
        if body.says(0, "comment", "on") and body.word(2) in ("table", "column"):
            target = TableName.at(body, 3)
            if target is not None and body.word(2) == "column":
                target = None if len(target.parts) < 2 else replace(target, parts=target.parts[:-1])
            remedy = "update_metadata and update_field_metadata keep texts about tables and columns"
            return cls._of(target, "COMMENT ON", remedy)
        if verb == "create" and "index" in (body.word(1), body.word(2)) and (on := body.find("on")) > 0:
            remedy = "create_scalar_index and create_index of LanceDataset make indexes"
            return cls._of(TableName.at(body, on + 1), "CREATE INDEX", remedy)
        if verb == "copy" and body.find("from") > 0:
            return cls._of(TableName.at(body, 1), "COPY … FROM", "INSERT INTO … FROM the file does the same")
        if verb == "copy" and (to := body.find("to")) > 0 and ".lance" in body.part(to).text.lower():
            target = TableName((body.part(to + 1).text.strip(),), "", to + 1, len(body))
            return cls._of(target, "COPY … TO a name that is no constant path", "write it as 'path.lance'")
        if body.says(0, "drop", "view"):
            target = TableName.at(body, 4 if body.says(2, "if", "exists") else 2)
            return cls._of(target, "DROP VIEW", "DROP TABLE drops the table")
        if verb == "create" and (view := body.find("view", stop=min(5, len(body)))) > 0:
            target = TableName.at(body, view + 1)
            qualified = None if target is None or len(target.parts) < 2 else target
            return cls._of(qualified, "CREATE VIEW in place of", "DROP TABLE it, or give the view another name")
        if verb in ("vacuum", "optimize"):
            target = TableName.at(body, 2 if body.says(0, "vacuum", "analyze") else 1)
            remedy = "optimize and cleanup_old_versions of LanceDataset do the upkeep"
            return cls._of(target, verb.upper(), remedy)
        return None

    @classmethod
    def _of(cls, target: TableName | None, what: str, remedy: str) -> RefusedStatement | None:
        return None if target is None else cls(target, what, remedy)

    def run(self, session: object) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(
            f"{self.what} is not supported on Lance tables", where=f"table {self.target.name}", remedy=self.remedy
        )


def _after_explain(statement: Clauses) -> int:
    if statement.word(0) != "explain":
        return 0
    if statement.text_at(1) == "(":
        return statement.closer(1) + 1
    return 2 if statement.word(1) == "analyze" else 1


def _begins_body(rest: Clauses, place: int) -> bool:
    """Return whether a statement begins at a place after WITH: a verb at depth 0 after the closing parenthesis."""
    word = rest.word(place)
    return rest.depths[place] == 0 and word is not None and rest.text_at(place - 1) == ")" and word in _BODIES


_BODIES: Final = VERBS | {"select", "from", "values", "table", "pivot", "unpivot", "summarize", "describe"}
