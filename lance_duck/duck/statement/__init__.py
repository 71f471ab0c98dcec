"""Parse and edit the text of a statement: tokens, clauses, placeholders and syntax tree.

You hold: SQL text. You get: tokens with offsets, clauses, a sqlglot tree of a SELECT, edited text. Each result is
computed once per text. sqlglot only parses the SELECT of a statement, because it misreads the clauses of changes. Those
clauses are split by tokens, and DuckDB parses them.
Pure. Never here: DuckDB calls other than the tokenizer, and lookups of Lance tables.
"""
