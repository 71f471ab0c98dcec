"""Choice of a physical column's page layout, and the bytes of its pages.

You hold: values, the outline of nulls and lists around them, and the forms of the file version (`grammar`). You get:
pages, each with its description and buffers.
Never here: the choice of the values' encoding (`encoding/write/codecs`), and page offsets in a file.
"""
