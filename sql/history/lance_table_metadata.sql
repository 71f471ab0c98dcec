-- lance_table_metadata: metadata of a Lance table.
--
--   path         folder or URI of the table; on connections of lance_duck.connect also its name
--   version      version number, tag, branch, or 'branch:number'
--   tag          tag
--   asof         time (timestamp or string): selects the newest version up to this time; without a time zone it is in the
--                TimeZone of the connection
--   branch       name of a branch
--   database     database of the table, if the name does not include it
--
-- Columns: Key, Value; by key. CALL lance_set_table_metadata(path, key, value) changes them.
-- Example: FROM lance_table_metadata('data/trips.lance')
CREATE OR REPLACE TEMP MACRO lance_table_metadata(
    path, version := NULL, tag := NULL, "asof" := NULL, branch := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'table_metadata', database::VARCHAR, path::VARCHAR,
        [version::VARCHAR, tag::VARCHAR, __lance_moment("asof"), branch::VARCHAR], NULL, current_setting('search_path')
    ));
