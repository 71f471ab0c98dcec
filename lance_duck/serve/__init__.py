"""The server: tables of one folder, bucket or namespace for other programs and for people.

You hold: settings. You get: an ASGI application, or a running server.
`gate/` decides who may do what, and for how long. `http/` turns requests into calls of handlers, and answers into
bytes. `rest/` has the handlers of the Lance REST namespace. `web/` has the pages for people.
`flight/` speaks Flight SQL.
Never here: planning, reading and writing, which are in the rooms below.
"""
