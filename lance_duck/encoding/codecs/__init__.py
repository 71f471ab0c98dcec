"""Compressive encodings of 2.1 and 2.2: one module and one frozen dataclass each, found by `registry`."""
