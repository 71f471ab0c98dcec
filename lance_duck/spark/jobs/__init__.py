"""Distributed work: jobs as Spark tasks, results in order, errors as the worker raised them.

You hold: a list of jobs that pickle. You get: their results, in the order of the list. Data too large for a
message lie beside the table while the job runs (`scratch`).
Never here: what a job does; that is for the verbs.
"""
