"""Columns are added, altered, dropped and merged: one new file for each fragment that gets values.

`new_columns` says where values come from (SQL, a function, a stream, a join, nulls), `schema_change` what becomes of
the schema (pure), `parts` writes values in many processes.
"""
