"""From Arrow to pages: arrays are shredded into levels and blocks, compressed, and laid out as pages."""
