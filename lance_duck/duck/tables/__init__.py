"""Lance tables as DuckDB scans them, and the table version that a name or path refers to.

You hold: a name, a path or a folder. You get: sources for DuckDB's scan protocol, of whole tables or search results; an
observer of DuckDB's requests; and the functions behind `match` and `score`.
Never here: the text of statements.
"""
