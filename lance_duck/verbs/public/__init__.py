"""What users hold and pass on, in pylance's shapes: LanceOperation, Transaction, FragmentMetadata, LanceSchema.

The classes bear pylance's names, on purpose the same as those of `commit.operations` and `wire`: `operation_convert`
goes from one to the other. All pickle, compare, and go to JSON and back where pylance's do.
You hold: objects of a user. You get: operations of `commit`, and the other way round. Never here: commits.
"""
