"""Executes proposals of `rules`. Each module reads rows or keys first. The statement then reads only these rows.

You hold: a proposal, the request that it is part of, and a connection. You get from `run`: edits of the text with their
tables, parameters and a line for EXPLAIN. If `run` returns None, that part of the statement stays unchanged. If an
edited statement fails, the original text runs.
Never here: analysis of the statement's text, which belongs to `rules`.
"""
