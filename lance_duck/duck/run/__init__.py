"""Executes proposals of `rules`: rows or keys are read first, and the statement then reads only these.

You hold: a proposal, the request that it is part of, and a connection. You get from `run`: edits of the text with their
tables, parameters and a line for EXPLAIN, or None, which leaves that part of the statement unchanged. An edited
statement that fails is run again as it was written.
Never here: analysis of the statement's text, which belongs to `rules`.
"""
