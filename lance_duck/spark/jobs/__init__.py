"""Runs jobs as Spark tasks. Returns the results in order, and re-raises the errors of workers.

You hold: a list of jobs that can be pickled. You get: the results, in the order of the list. While the jobs run, data
that is too large for a message is stored in the table's directory (`scratch`).
Never here: the work of a job (see `verbs`).
"""
