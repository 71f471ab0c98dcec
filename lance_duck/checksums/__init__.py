"""Checksums of the files that this package writes, in places that other readers pass over.

You hold: the bytes of a buffer, of the end of a data file, of a deletion file or of a manifest. You get: their digests
as bytes to put beside them, and what such bytes say, checked.
Never here: reads and writes of files (`store/checked` compares what is read), and what the other bytes mean.
"""
