"""The bytes of a partition: the automaton of its terms, blocks of postings, impacts, positions.

You hold: values of columns of a partition's files, or plain numbers. You get: the same, decoded, checked, or encoded.
Never here: files, and which of them there are.
"""
