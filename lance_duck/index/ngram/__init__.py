"""N-gram indexes: for each trigram of a text column, the rows whose text has it.

_indices/{uuid}/ngram_postings.lance

You hold: batches of texts and rows, or open segments. You get: the file of a segment; from an open one the rows that
may satisfy a condition on substrings; the scan compares them.
Never here: the fragments that a segment answers for, and the conditions of a filter.
"""
