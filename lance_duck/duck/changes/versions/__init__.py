"""Procedures about versions: what the commit of a transaction says, restore, tags and branches.

You hold: a CALL. You get: its rows, after the verbs have done it.
Never here: rows and columns.
"""
