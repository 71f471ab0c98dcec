"""`LanceDataset.search`: for vectors, for words, or for both; read at once, or built step by step.

You hold: arguments of a search, named as in pylance and LanceDB. You get: rows, best first.
Never here: how rows are found, which is for `scan/nearest`, `scan/text` and `scan/hybrid`.
"""
