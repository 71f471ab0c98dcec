"""Proposals of `rules` carried out: rows or keys are read first, and the statement runs over these alone.

You hold: a proposal and a connection. You get: an edited statement with its tables and parameters, or None, and then
the statement runs as it was written. An edited statement that fails is run again as it was written.
"""
