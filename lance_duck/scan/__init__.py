"""Scans: from a filter and a snapshot to Arrow batches.

`WHERE id = 7` takes this path: `filters` (SQL text or expression → predicate) → `plan` → `routing`, which calls
`indexes/plan` (pure) to assign conditions to indexes and `indexes/lookup` to find the rows → `read/execute`, which
splits the plan into `read/tasks`.
You hold: a snapshot and ScanOptions. You get: batches in table order, or best first
for a search, counts, rows by position; `explain` as text.
Never here: changes of a table, and SQL statements (see `duck`).
"""
