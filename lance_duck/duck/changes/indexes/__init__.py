"""Statements about indexes: CREATE, DROP, SHOW, ALTER INDEX … OPTIMIZE and REINDEX.

You hold: a statement's clauses and a session. You get: an index that was made, dropped, brought up to date or described
by the verbs of `LanceDataset`; what is not named comes from their defaults. Never here: how an index is built.
"""
