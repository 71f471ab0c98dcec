"""Versions of a table: history, tags, branches, clones, differences, settings, commits by hand.

You hold: a dataset. You get: the methods of its mixins, which return information, or move its handle to the version
that results. Never here: the choice and the publication of versions (`snapshot`), and removal of old ones
(`maintenance`).
"""
