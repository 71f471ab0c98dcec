-- lance_files: one row for each data file and deletion file of a Lance table, by fragment.
--
--   table_name   folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   version      version number, name of a tag, name of a branch, or 'branch:number'
--   tag          name of a tag
--   asof         point in time (timestamp or text): the newest version that is not younger; without a zone it is in the
--                TimeZone of the connection
--   branch       name of a branch
--   database     database that has the table, where the name does not say
--
-- Columns: fragment_id, kind ('data' or 'deletion'), path, base (what the path is relative to), rows (of a deletion file:
-- those deleted), bytes (NULL: not known), file_version, columns.
-- Example: SELECT kind, count(*), sum(bytes) FROM lance_files('data/trips.lance') GROUP BY kind
CREATE OR REPLACE TEMP MACRO lance_files(
    table_name, version := NULL, tag := NULL, "asof" := NULL, branch := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'files', database::VARCHAR, table_name::VARCHAR,
        [version::VARCHAR, tag::VARCHAR, __lance_moment("asof"), branch::VARCHAR], NULL, current_setting('search_path')
    ));
