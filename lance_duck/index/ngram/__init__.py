"""N-gram indexes: for each trigram of a text column, the rows whose text contains it.

_indices/{uuid}/ngram_postings.lance

You hold: batches of texts and rows, or open segments.
You get: the file of a segment, or, from an open segment, the rows that may satisfy a substring condition. The scan
compares their texts.
Never here: segment coverage, and filter conditions.
"""
