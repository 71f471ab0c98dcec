"""DuckDB's scan protocol: which columns, which filters (2.0's nodes, 1.5's expressions), how many rows, which types."""
