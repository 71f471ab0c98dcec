"""Encodings: values to page buffers, and back.

You hold: buffers of a page. You get: a Block (values only) from a codec, levels from a layout, and an Arrow array from
both. A codec turns buffers into a block in any layout: a new encoding is a module in `codecs`, a line in
`codecs/registry.py`, and, to be written, a case in `write/codecs`.
Never here: files, positions in files, threads. Allocations are bounded by the number of available bytes.
"""
