"""Codecs, the compressive encodings of 2.1 and 2.2. They are frozen dataclasses that `registry` creates.

You hold: a description of the encoding and its buffers. You get: blocks of values, and buffers of blocks. Never here:
layouts, levels, and the choice of an encoding.
"""
