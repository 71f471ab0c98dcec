"""`LanceDataset.search`: vector, full-text and hybrid searches, run directly or built step by step.

You hold: arguments of a search, named as in pylance and LanceDB. You get: rows, best first.
Never here: the execution of searches (see `scan/nearest`, `scan/text` and `scan/hybrid`).
"""
