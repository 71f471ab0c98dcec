"""The text of a statement: its tokens, its placeholders, and the one SELECT that it may consist of.

You hold: SQL text. You get: tokens with offsets, numbered placeholders, a sqlglot tree. Pure; nothing asks DuckDB.
"""
