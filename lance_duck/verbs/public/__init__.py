"""Objects that users hold and pass on, in pylance's shapes: LanceOperation, Transaction, FragmentMetadata, LanceSchema.

The classes have pylance's names, some of which are those of classes in `commit.operations` and `wire`, too:
`operation_convert` converts between the two. All pickle, compare, and go to JSON and back where pylance's do.
You hold: objects of a user. You get: operations of `commit`, and vice versa. Never here: commits.
"""
