"""Every change of a table, by its verb."""
