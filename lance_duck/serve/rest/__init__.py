"""The Lance REST namespace, with data: the paths that LanceDB, pylance, DuckDB's extension and Spark use.

You hold: a `ServerCall` and a `HttpRequest`. You get: an answer in the dialect of the client.
Never here: sockets, limits and roles.
"""
