"""Writes pages: Arrow arrays are shredded into levels and blocks, compressed, and laid out as pages.

You hold: Arrow arrays of one column. You get: pages. `options` contains the settings of a field, `grammar` the forms
that each file version supports, and `costs` the thresholds. Never here: files.
"""
