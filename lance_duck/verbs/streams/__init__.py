"""Support for streams from and to a table: the rows that a version inserted, and batches that are committed once.

You hold: a version, or the name and number of a batch. You get: the fragments with new rows, and properties and guards
of a commit by which a batch that was committed before is refused.
Never here: Spark, and the reading of rows.
"""
