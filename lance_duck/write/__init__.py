"""From batches to data files and fragments, and from deleted rows to deletion files."""
