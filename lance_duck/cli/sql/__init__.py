"""The `sql` command: runs statements from arguments, files, a pipe, or a shell with history and completion.

You hold: SQL and command-line arguments. You get: results on stdout in the formats of the other commands, and errors on
stderr with file and line. Statements run in order on one connection.
Never here: the meaning of statements, which `lance_duck.connect` defines.
"""
