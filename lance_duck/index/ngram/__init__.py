"""N-gram indexes: for each trigram of a text column, the rows whose text has it.

_indices/{uuid}/ngram_postings.lance

The input is batches of texts and rows, or open segments. The output is the file of a segment, or, from an open one, the
rows that may satisfy a substring condition. The scan compares their texts. Fragment coverage and filter conditions
belong elsewhere.
"""
