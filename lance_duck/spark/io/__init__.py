"""The data source `lance`: batch source and sink, streams, options, and type conversion between Spark and Lance.

You hold: Spark's interface for Python data sources. You get: Arrow batches with exactly the declared types, and files
that are committed exactly once, even if tasks are retried (`staged_commit`). Never here: jobs of verbs, and the file
format.
"""
