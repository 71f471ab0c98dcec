"""Versions of a table as users see them: history, tags, branches, clones, differences, settings, commits by hand."""
