"""From Arrow to pages: arrays are shredded into levels and blocks, compressed, and laid out as pages.

You hold: Arrow arrays of one column. You get: pages. `options` says what was asked for, `grammar` what readers of a
version know, `costs` what pays. Never here: files.
"""
