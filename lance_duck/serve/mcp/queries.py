"""Tools that run SQL."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Annotated, Final

from pydantic import Field

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.effects import effects
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import ForbiddenError, RequestError
from lance_duck.serve.gate.statements import StatementRows, batches_of, check_sql_size, run_statements
from lance_duck.serve.mcp.answers import ShownChanges, ShownPlan, ShownRows
from lance_duck.serve.mcp.names import TableArgument, open_named, parts_of
from lance_duck.serve.mcp.rows import LONGEST_NAME, limited_rows
from lance_duck.serve.mcp.texts import LONGEST_ANSWER, cut_text, first_fitting

_LONGEST_LIST: Final = 5000
"""In characters."""
_LONGEST_PLAN: Final = LONGEST_ANSWER // 2
"""In characters. JSON escapes line ends and quotes."""


def query(
    call: ServerCall,
    sql: Annotated[str, Field(description="A SELECT in DuckDB's SQL. Names with capitals or spaces need quotes.")],
    max_rows: Annotated[int, Field(ge=1, le=1000, description="Maximum number of rows.")] = 100,
) -> ShownRows:
    """Run a SQL query. It can only read. Filter and aggregate in SQL instead of reading many rows."""
    found = _run(call, sql, max_rows + 1)
    with closing(found.batches):
        return limited_rows(call, found.schema, found.batches, max_rows)


def explain(call: ServerCall, sql: Annotated[str, Field(description="A statement. It does not run.")]) -> ShownPlan:
    """Explain how a statement would run: its plan, and the indexes that it uses."""
    with closing(_run(call, f"EXPLAIN {sql}", None).batches) as batches:
        texts = [str(text) for batch in batches for text in batch.column(batch.num_columns - 1).to_pylist()]
    return ShownPlan(plan=cut_text("\n".join(texts), _LONGEST_PLAN))


def changes(
    call: ServerCall,
    table: TableArgument,
    from_version: Annotated[int, Field(ge=1, description="The older version.")],
    to_version: Annotated[int | None, Field(ge=1, description="The newer version. Default: the newest one.")] = None,
    rows: Annotated[int, Field(ge=0, le=100, description="Number of changed rows to show.")] = 0,
) -> ShownChanges:
    """Compare two versions of a table: counts of changed rows, changed columns, and some of the rows."""
    after = open_named(call, table, to_version)
    before = after.checkout_version(from_version)
    if before.version > after.version:
        raise InvalidInputError(
            "the versions are in the wrong order",
            where="changes",
            expected=f"at most {after.version}",
            found=from_version,
        )
    is_same = before.version == after.version
    source = "" if is_same else _changed_rows(parts_of(call, table), before, after)
    counts: dict[str, int] = {} if is_same else dict(_counts(call, source))
    sample = None if is_same or not rows else _some(call, source, rows)
    old, new = ({field.name: str(field.type) for field in each.schema} for each in (before, after))
    return ShownChanges(
        from_version=before.version,
        to_version=after.version,
        rows_before=before.count_rows(),
        rows_after=after.count_rows(),
        inserted=counts.get("insert", 0),
        updated=counts.get("update_postimage", 0),
        deleted=counts.get("delete", 0),
        columns_added=_shortened(f"{name}: {type_}" for name, type_ in new.items() if name not in old),
        columns_removed=_shortened(f"{name}: {type_}" for name, type_ in old.items() if name not in new),
        columns_changed=_shortened(
            f"{name}: {old[name]} to {type_}" for name, type_ in new.items() if old.get(name, type_) != type_
        ),
        sample=sample,
    )


def _run(call: ServerCall, sql: str, max_rows: int | None) -> StatementRows:
    """Run one statement that reads. The rows of the last of several statements would be unbounded."""
    check_sql_size(sql)
    if len(effects(sql)) > 1:
        raise RequestError("a tool runs one statement")
    try:
        return run_statements(call, sql, max_rows=max_rows, shows_place=False)
    except ForbiddenError as error:
        if not call.settings.sql:
            raise
        raise ForbiddenError(
            "the tools of this server only read", found=error.found, remedy="send SELECT, DESCRIBE, SHOW or SUMMARIZE"
        ) from None


def _changed_rows(name: tuple[str, ...], before: LanceDataset, after: LanceDataset) -> str:
    """Return SQL of the rows that changed between two versions."""
    if len(name) > 2:
        raise UnsupportedError("SQL does not reach tables in nested namespaces", where="$".join(name))
    table = literal(".".join(map(quoted, name)))
    return f"lance_table_changes({table}, {before.version + 1}, {after.version})"


def _counts(call: ServerCall, source: str) -> list[tuple[str, int]]:
    sql = f"SELECT change_type, count(*) FROM {source} GROUP BY ALL"  # noqa: S608  the name is quoted
    return list(call.cursor().execute(sql).fetchall())


def _some(call: ServerCall, source: str, rows: int) -> ShownRows:
    sql = f"SELECT * FROM {source} WHERE change_type <> 'update_preimage' LIMIT {rows + 1}"  # noqa: S608  likewise
    reader = call.cursor().sql(sql).to_arrow_reader(rows + 1)
    with closing(batches_of(reader)) as batches:
        return limited_rows(call, reader.schema, batches, rows)


def _shortened(texts: Iterable[str]) -> list[str]:
    """Return the first texts of a list."""
    kept, left_out = first_fitting((cut_text(text, LONGEST_NAME) for text in texts), _LONGEST_LIST, len)
    return [*kept, f"… ({left_out:,} more)"] if left_out else kept
