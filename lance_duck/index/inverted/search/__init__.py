"""Searches of a partition: scores of documents, from compressed postings.

You hold: an open partition, ids of terms with their weights, norms of documents, a mask of documents. You get:
documents with their scores, all that match or the best of them.
Never here: trees of queries, statistics of several partitions, rows without an index (`scan/text`).
"""

from lance_duck.index.inverted.search.best import best_documents
from lance_duck.index.inverted.search.matching import WeightedTerms, matching_documents
from lance_duck.index.inverted.search.phrases import PhraseOrder, best_phrases

__all__ = ["PhraseOrder", "WeightedTerms", "best_documents", "best_phrases", "matching_documents"]
