"""The HTTP side of a server: requests, answers and the application.

You hold: a gate and a table of routes. You get: an ASGI application.
Handlers are plain functions that run in worker threads: `handler(call, request)` returns an answer.
Never here: the work of a route.
"""
