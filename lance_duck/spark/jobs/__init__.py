"""Distributed work: jobs as Spark tasks, results in order, errors as the worker raised them.

You hold: a list of jobs that pickle. You get: their results, in the order of the list. Data too large for a
message is stored in the table's directory while the job runs (`scratch`).
Never here: the work of a job, which is defined in `verbs`.
"""
