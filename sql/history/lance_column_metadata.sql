-- lance_column_metadata: metadata of a column of a Lance table.
--
--   path         folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   column_name  path of the column
--   version      version number, name of a tag, name of a branch, or 'branch:number'
--   tag          name of a tag
--   asof         point in time (timestamp or text): the newest version that is not younger; without a zone it is in the
--                TimeZone of the connection
--   branch       name of a branch
--   database     database that has the table, where the name does not say
--
-- Columns: Key, Value; by key. CALL lance_set_column_metadata(path, column_name, key, value) changes them.
-- Example: FROM lance_column_metadata('data/trips.lance', 'city')
CREATE OR REPLACE TEMP MACRO lance_column_metadata(
    path, column_name, version := NULL, tag := NULL, "asof" := NULL, branch := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'column_metadata', database::VARCHAR, path::VARCHAR,
        [version::VARCHAR, tag::VARCHAR, __lance_moment("asof"), branch::VARCHAR], [column_name::VARCHAR], current_setting('search_path')
    ));
