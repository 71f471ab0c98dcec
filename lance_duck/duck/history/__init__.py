"""History and metadata functions, such as `lance_versions`, `lance_table_changes` and `lance_files`.

You hold: a table at a version, and the arguments of a function. You get: a source that DuckDB scans. `names` lists the
functions, and `functions` runs them. Functions about settings, metadata and indexes are in `duck/tables/facts`. `about`
and `storage` build tables from manifests. `table_changes` streams changed rows. The folder `sql/history` at the root of
the repository contains one SQL file for each function.
Never here: computing the row changes of a version (see `verbs.versions.row_changes`), and name resolution.
"""
