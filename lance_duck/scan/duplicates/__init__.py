"""Pairs of rows whose texts are nearly equal, by MinHash.

You hold: a table, a text column and a threshold. You get: pairs of row ids with the Jaccard similarity of their
shingles. `parameters` describes how texts are signed, as in MinHash indexes of Lance. `shingles` turns texts into
hashes and band keys, `segments` reads the band keys of an index, `candidates` lists documents that share a band, and
`search` compares their texts.
Never here: building an index.
"""
