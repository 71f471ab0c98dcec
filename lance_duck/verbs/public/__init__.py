"""pylance-compatible objects for users: LanceOperation, Transaction, FragmentMetadata, LanceSchema.

The classes have pylance's names. Some names also occur in `commit.operations` and `wire`; `operation_convert` converts
between the two. All classes can be pickled and compared, and convert to JSON if pylance's do.
You hold: a user's objects. You get: operations of `commit`, and vice versa. Never here: commits.
"""
