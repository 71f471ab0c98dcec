"""The bytes of a partition: the automaton of its terms, blocks of postings, impacts, positions.

You hold: values of columns of a partition's files, or plain numbers. You get: these decoded and checked, or encoded.
Never here: files.
"""
