-- lance_files: one row for each data file and deletion file of a Lance table, by fragment.
--
--   table_name   folder or URI of the table; on connections of lance_duck.connect also its name
--   version      version number, tag, branch, or 'branch:number'
--   tag          tag
--   asof         time (timestamp or string): selects the newest version up to this time; without a time zone it is in the
--                TimeZone of the connection
--   branch       name of a branch
--   database     database of the table, if the name does not include it
--
-- Columns: fragment_id, kind ('data' or 'deletion'), path, base (what the path is relative to), rows (of a deletion file:
-- those deleted), bytes (NULL: unknown), file_version, columns.
-- Example: SELECT kind, count(*), sum(bytes) FROM lance_files('data/trips.lance') GROUP BY kind
CREATE OR REPLACE TEMP MACRO lance_files(
    table_name, version := NULL, tag := NULL, "asof" := NULL, branch := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'files', database::VARCHAR, table_name::VARCHAR,
        [version::VARCHAR, tag::VARCHAR, __lance_moment("asof"), branch::VARCHAR], NULL, current_setting('search_path')
    ));
