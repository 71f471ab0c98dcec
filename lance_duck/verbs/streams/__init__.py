"""What those who follow a table need: the rows that a version brought, and batches that land once.

You hold: a version, or the name and number of a batch. You get: the fragments with new rows, and properties and guards
of a commit by which a batch that has landed is refused.
Never here: Spark, and the reading of rows.
"""
