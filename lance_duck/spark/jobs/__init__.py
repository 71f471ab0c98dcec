"""Work in many places: jobs as Spark tasks, results in order, errors as the worker raised them.

You hold: a list of jobs that pickle. You get: their results, in the order of the list. What is too large for a message
lies beside the table while the job runs (`scratch`).
Never here: what a job does, which the verbs say.
"""
