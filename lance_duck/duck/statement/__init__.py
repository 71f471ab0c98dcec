"""Parse and edit the text of a statement: tokens, clauses, placeholders and syntax tree.

You hold: SQL text. You get: tokens with offsets, clauses, a sqlglot tree of a SELECT, edited text. Each result is
computed once per text. Only the SELECT of a statement is parsed: sqlglot misreads the clauses of changes. These are
split by tokens and left to DuckDB.
Pure. Never here: DuckDB calls other than the tokenizer, and lookups of Lance tables.
"""
