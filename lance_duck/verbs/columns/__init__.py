"""Columns are added, altered, dropped and merged: one new file for each fragment that gets values.

You hold: a version, and what becomes of its columns. You get: an operation and new data files. `new_columns` says where
values come from (SQL, a function, a stream, a join, nulls), `schema_change` what becomes of the schema (pure), `parts`
writes values in many processes.
Never here: new rows, and rows that change (`verbs/rows`).
"""
