"""Validation: the problems of a version, and repaired versions without lost rows.

You hold: a snapshot. You get: problems by name; for each file, whether it matches its checksums; a version without the
rows and index segments that are lost. Never here: changes of readable data.
"""
