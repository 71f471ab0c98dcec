"""R-trees: the bounding boxes of geometries, in pages of boxes that lie close together.

_indices/{uuid}/page_data.lance, nulls.lance    see `index.rtree.layout`

You hold: batches of geometries and rows, or open segments.
You get: the files of a segment, or, from an open segment, the rows whose boxes overlap a box. DuckDB compares the
geometries of these rows.
Never here: segment coverage, and filter conditions.
"""
