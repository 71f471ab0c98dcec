"""The command `sql`: runs statements from arguments, files, a pipe, or a shell with history and completion.

You hold: texts of SQL and the words of a command line. You get: results on stdout as the other commands write them,
and errors on stderr, with file and line. Statements run on one connection, in order.
Never here: what a statement means; `lance_duck.connect` decides that.
"""
