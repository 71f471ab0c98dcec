"""Writes pages: Arrow arrays are shredded into levels and blocks, compressed, and laid out as pages.

You hold: Arrow arrays of one column. You get: pages. `options` has a field's settings, `grammar` the forms that each
file version supports, `costs` the thresholds. Never here: files.
"""
