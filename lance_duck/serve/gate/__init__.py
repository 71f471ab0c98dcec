"""Decides who may do what, and for how long. Every request to a server passes through it, in every protocol.

You hold: settings, and the credentials of a caller. You get: a `ServerCall` with a deadline, for tables and SQL.
Work runs in the caller's thread. A `ServerCall` can be cancelled from another thread.
Never here: HTTP and other protocols.
"""
