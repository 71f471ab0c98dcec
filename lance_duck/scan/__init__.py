"""Scans: from a filter and a snapshot to Arrow batches.

The path of `WHERE id = 7`: `filters` (SQL text or expression → predicate) → `plan` → `routing`, which asks
`indexes/plan` (pure) which index answers which part and `indexes/lookup` for the rows → `read/execute`, which cuts the
plan into `read/tasks`.
You hold: a snapshot and ScanOptions. You get: batches in table order, or best first of a search, counts, rows by
position; `explain` in words.
Never here: changes of a table, and SQL statements (`duck` has these).
"""
