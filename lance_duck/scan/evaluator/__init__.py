"""DuckDB as the evaluator of SQL expressions on Arrow columns, in a private database that sees nothing else."""
