"""Checksums of the files that this package writes, at offsets that other readers skip.

You hold: a buffer, a data file's last bytes, a deletion file, a manifest. You get: digests as bytes to store with them,
and stored digests, parsed and validated.
Never here: reads and writes of files (`store/checked` verifies bytes as they are read), and the meaning of the bytes.
"""
