"""Full-text queries: query trees, the words that an analyser extracts, and the terms to which words expand.

You hold: words and options, with pylance's names. You get: a validated tree, and the words of its leaves. Never here:
tables, indexes and scores.
"""
