"""Page layouts of 2.1 and 2.2 (miniblock, full zip, constant, blob), their levels, and the assembly of nested arrays.

You hold: a page, and the numbers of rows to read. You get: requests for byte ranges, then values and levels. Never
here: columns of several pages, and files.
"""
