"""The text of a statement: its tokens, its clauses, its placeholders, its tree, and edits of it.

You hold: SQL text. You get: tokens with offsets, clauses cut at them, a sqlglot tree of a SELECT, a text after edits.
Each is found once for a text. Clauses of statements that change something are cut by tokens and left to DuckDB, for
sqlglot misreads them; only the SELECT of a statement is parsed.
Pure. Never here: questions to DuckDB but for tokens, and whether a name is a table of ours.
"""
