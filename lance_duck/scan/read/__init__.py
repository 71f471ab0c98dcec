"""Executes plans: reads row ranges and rows chosen by indexes in threads, and yields ordered batches.

You hold: a ScanPlan, or positions, addresses or row ids. You get: Arrow batches in order, or one table. `row_access`
decides how the rows of a fragment are read, with thresholds from `scan/costs`. Never here: the meaning of filters.
`fragment_reader` reads rows of one fragment by physical offset, `take` reads rows by position, address or row id.
"""
