-- lance_fragments: one row for each fragment of a Lance table, in the order of its rows.
--
--   table_name   folder or URI of the table; on connections of lance_duck.connect also its name
--   version      version number, tag, branch, or 'branch:number'
--   tag          tag
--   asof         time (timestamp or string): selects the newest version up to this time; without a time zone it is in the
--                TimeZone of the connection
--   branch       name of a branch
--   database     database of the table, if the name does not include it
--
-- Columns: fragment_id, rows, deleted_rows, physical_rows, files, bytes (of data files; NULL: not known), deletion_file.
-- Example: SELECT sum(deleted_rows) FROM lance_fragments('data/trips.lance')
CREATE OR REPLACE TEMP MACRO lance_fragments(
    table_name, version := NULL, tag := NULL, "asof" := NULL, branch := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'fragments', database::VARCHAR, table_name::VARCHAR,
        [version::VARCHAR, tag::VARCHAR, __lance_moment("asof"), branch::VARCHAR], NULL, current_setting('search_path')
    ));
