-- lance_fragments: one row for each fragment of a Lance table, in the order of its rows.
--
--   table_name   folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   version      version number, name of a tag, name of a branch, or 'branch:number'
--   tag          name of a tag
--   asof         point in time (timestamp or text): the newest version that is not younger; without a zone it is in the
--                TimeZone of the connection
--   branch       name of a branch
--   database     database that has the table, where the name does not say
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
