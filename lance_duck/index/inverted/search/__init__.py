"""Searches of a partition: document scores from compressed postings.

You hold: an open partition, term ids with weights, document norms, and a mask of documents.
You get: documents with their scores, either all matches or the matches with the highest scores.
Never here: query trees, statistics of several partitions, and unindexed rows (`scan/text`).
"""

from lance_duck.index.inverted.search.best import BestOfTerms, best_documents, in_order, prepared_terms
from lance_duck.index.inverted.search.counting import count_documents
from lance_duck.index.inverted.search.direct import DirectSearch
from lance_duck.index.inverted.search.matching import WeightedTerms, matching_documents
from lance_duck.index.inverted.search.phrases import BestOfPhrase, PhraseOrder, best_phrases, prepared_phrase

__all__ = [
    "BestOfPhrase",
    "BestOfTerms",
    "DirectSearch",
    "PhraseOrder",
    "WeightedTerms",
    "best_documents",
    "best_phrases",
    "count_documents",
    "in_order",
    "matching_documents",
    "prepared_phrase",
    "prepared_terms",
]
