"""The pages for people, and SQL over HTTP.

You hold: a `ServerCall` and a `HttpRequest`. You get: HTML, or rows as JSON, CSV, Parquet and Arrow.
Pages read the manifest of a table, and the rows that they show. They work without JavaScript.
Never here: sockets, limits, roles, and the Lance REST namespace.
"""
