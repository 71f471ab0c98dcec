"""Columns of 2.0 files: each field has a column, lists read their ends first."""
