"""Tables in Spark SQL: views that follow writes, table functions, and facts of a table as frames."""
