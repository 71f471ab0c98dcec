"""Versions of a table: history, tags, branches, clones, differences, settings, manual commits.

You hold: a dataset. You get: methods of its mixins, which return information or move the handle to a new version.
Never here: the choice and publication of versions (`snapshot`), and removal of old ones (`maintenance`).
"""
