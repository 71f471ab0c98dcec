"""Versions of a table: history, tags, branches, clones, differences, settings, manual commits.

Input: a dataset. Output: methods of its mixins, which return information or move the handle to a new version. Not here:
the choice and publication of versions (`snapshot`), and removal of old ones (`maintenance`).
"""
