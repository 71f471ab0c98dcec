"""The data source `lance`: batch source and sink, streams, options, and type conversion between Spark and Lance.

You hold: Spark's interface for Python data sources. You get: Arrow batches of exactly the declared types; files that
are committed exactly once, even if tasks are retried (`staged_commit`).
Never here: jobs of verbs, and file formats.
"""
