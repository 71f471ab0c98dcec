"""Execution of plans: ranges of rows and rows that indexes chose, in threads, batches in order, an early end.

You hold: a ScanPlan, or positions, addresses or row ids. You get: Arrow batches in order, or one table. `row_access`
decides how the rows of a fragment are read, with thresholds from `scan/costs`. Never here: which rows a filter means.
`fragment_reader` gives rows of one fragment by physical offset, `take` rows by position, address or row id.
"""
