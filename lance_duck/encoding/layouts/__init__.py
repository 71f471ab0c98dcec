"""Page layouts of 2.1 and 2.2: miniblock, full zip, constant, blob; levels; and levels assembled into nested arrays.

You hold: a page and rows of it. You get: requests for byte ranges, then values and levels. Never here: columns of
several pages, and files.
"""
