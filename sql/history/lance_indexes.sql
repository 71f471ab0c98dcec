-- lance_indexes: a row for each index of a Lance table, by name.
--
--   path         folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   version      version number, name of a tag, name of a branch, or 'branch:number'
--   tag          name of a tag
--   asof         point in time (timestamp or text): the newest version that is not younger; without a zone it is in the
--                TimeZone of the connection
--   branch       name of a branch
--   database     database that has the table, where the name does not say
--
-- Columns: index_name, index_type, fields (paths of columns), rows_indexed, details (JSON).
-- Example: FROM lance_indexes('data/trips.lance')
CREATE OR REPLACE TEMP MACRO lance_indexes(
    path, version := NULL, tag := NULL, "asof" := NULL, branch := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'indexes', database::VARCHAR, path::VARCHAR,
        [version::VARCHAR, tag::VARCHAR, __lance_moment("asof"), branch::VARCHAR], NULL, current_setting('search_path')
    ));
