"""`LanceDataset.search`: for vectors, for words, or for both; read at once, or built step by step.

You hold: what a caller asks for, in the words of pylance and LanceDB. You get: rows, the best first.
Never here: how rows are found, which is for `scan/nearest`, `scan/text` and `scan/hybrid`.
"""
