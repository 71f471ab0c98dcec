"""Scans: from a filter and a snapshot to Arrow batches.

`WHERE id = 7` takes this path: `filters` (SQL text or expression → predicate) → `plan` → `routing`, which calls
`indexes/plan` (pure) to assign conditions to indexes and `indexes/lookup` to find the rows → `read/execute`, which
splits the plan into `read/tasks`.
You hold: a snapshot and ScanOptions. You get: batches in table order (the best first for a search), row counts, rows by
position, and plans as text.
Never here: changes to a table, and SQL statements (see `duck`).
"""
