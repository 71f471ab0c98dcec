"""Writing of pages: Arrow arrays are shredded into levels and blocks, compressed, and laid out as pages.

You hold: Arrow arrays of one column. You get: pages. `options` has what a field asks for, `grammar` what readers of a
version know, `costs` the thresholds. Never here: files.
"""
