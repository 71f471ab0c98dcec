"""The tables as tools of the Model Context Protocol, by stdio or over HTTP. All tools only read.

You hold: a gate. You get: an MCP server, or an ASGI application to mount. Each tool is a call of the gate.
Answers are short enough for a model, and count omitted values.
Never here: roles, limits of time, and changes of tables.
"""
