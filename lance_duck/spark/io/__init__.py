"""The data source `lance`: batch source and sink, streams, their options, and types of Spark and Lance, both ways.

You hold: Spark's interface for Python data sources. You get: Arrow batches of exactly the promised types; files that
are committed once, however often tasks are retried (`staged_commit`).
Never here: jobs of verbs, and file formats.
"""
