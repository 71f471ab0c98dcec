"""Encodings: values to page buffers, and back.

You hold: buffers of a page. You get: a Block (values only) from a codec, levels from a layout, and an Arrow array from
both. Codecs do not depend on the layout of a page. To add an encoding, add a module to `codecs` and a line to
`codecs/registry.py`. To also write it, add a case to `write/codecs`.
Never here: files, positions in files, threads. Allocations are limited by the number of available bytes.
"""
