"""The command `sql`: statements out of arguments, files, a pipe, or a shell with history and completion.

You hold: texts of SQL and the words of a command line. You get: results on stdout as the other commands write them,
and errors on stderr, with the file and the line that they are about. Statements run on one connection, in order.
Never here: what a statement means; `lance_duck.connect` decides that.
"""
