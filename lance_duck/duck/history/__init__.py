"""History and metadata of tables as relations: `lance_versions`, `lance_table_changes`, `lance_files` and their kind.

You hold: a table at a version, and the arguments of a function. You get: a source that DuckDB scans. `names` lists the
functions, `functions` runs them (settings, metadata and indexes: `duck/tables/facts`). `about` and `storage` build
tables from manifests, `table_changes` streams changed rows. The SQL of the functions is in `sql/history` at the root of
the repository, one file for each function.
Never here: row changes of a version, which `verbs.versions.row_changes` computes; and name resolution.
"""
