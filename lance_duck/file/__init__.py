"""The data-file container: footer, column metadata, pages, columns."""
