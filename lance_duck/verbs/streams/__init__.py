"""What those who follow a table need: the rows that a version brought, and batches that land once."""
