"""The encodings of a partition: the term FST, posting blocks, impacts and positions.

You hold: column values of a partition's files, or plain numbers. You get: the decoded and validated values, or encoded
numbers. Never here: files.
"""
