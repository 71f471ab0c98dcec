"""Sources that let DuckDB scan Lance tables, and the lookup of table versions by name or path.

You hold: a name, a path or a folder. You get: sources for DuckDB's scan protocol that return tables or search results,
an observer of DuckDB's requests, and the functions behind `match` and `score`.
Never here: the text of statements.
"""
