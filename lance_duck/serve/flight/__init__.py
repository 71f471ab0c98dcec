"""Arrow Flight SQL over gRPC, for ADBC, JDBC and ODBC drivers.

You hold: the gate. You get: a running Flight server.
Handles of statements contain the statement, so that the server keeps no state for them. It keeps open transactions,
and for a minute the rows that a change returns.
Never here: HTTP. SQL of callers runs in `gate.statements`.
"""
