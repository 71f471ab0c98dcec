"""Which layout the values and levels of a physical column get, and its pages."""
