"""Lance tables as DuckDB scans them, and the table version that a name or path refers to.

You hold: a name, a path or a folder. You get: sources that DuckDB's scan protocol reads, whole or as a search finds
their rows, an observer of what DuckDB asks of them, and the functions behind `match` and `score`.
Never here: the text of statements.
"""
