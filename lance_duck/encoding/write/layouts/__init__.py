"""Choice of the layout of a physical column, and the bytes of its pages.

You hold: values, the outline of nulls and lists around them, and what readers of the version know (`grammar`). You get:
pages, each with its description and buffers.
Never here: the choice of the values' encoding (`encoding/write/codecs`), and places of pages in a file.
"""
