"""pyarrow expressions as filters: read from their pickled form, evaluated by pyarrow, narrowed by indexes."""
