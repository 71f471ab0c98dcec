"""Searches of a partition: document scores from compressed postings.

The input is an open partition, term ids with weights, document norms, and a mask of documents. The output is documents
with their scores: all that match, or the best ones. Query trees, statistics of several partitions, and unindexed rows
belong elsewhere (`scan/text`).
"""

from lance_duck.index.inverted.search.best import best_documents
from lance_duck.index.inverted.search.matching import WeightedTerms, matching_documents
from lance_duck.index.inverted.search.phrases import PhraseOrder, best_phrases

__all__ = ["PhraseOrder", "WeightedTerms", "best_documents", "best_phrases", "matching_documents"]
