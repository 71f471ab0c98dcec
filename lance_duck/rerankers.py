"""Rerankers for `LanceDataset.search`, with LanceDB's names and parameters."""

from lance_duck.scan.rerank.rerankers import LinearCombinationReranker, MMRReranker, MRRReranker, RRFReranker

__all__ = ["LinearCombinationReranker", "MMRReranker", "MRRReranker", "RRFReranker"]
