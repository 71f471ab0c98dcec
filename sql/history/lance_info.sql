-- lance_info: one row about a Lance table at a version.
--
--   table_name   folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   version      version number, name of a tag, name of a branch, or 'branch:number'
--   tag          name of a tag
--   asof         point in time (timestamp or text): the newest version that is not younger; without a zone it is in the
--                TimeZone of the connection
--   branch       name of a branch
--   database     database that has the table, where the name does not say
--
-- Columns: uri, branch, version, latest_version, timestamp, tags, columns, rows, deleted_rows, fragments, files, bytes, indexes,
-- storage_version, stable_row_ids, reader_flags, writer_flags, writer.
-- In a transaction that changed the table, version is the one below its changes, and latest_version counts what others
-- have committed meanwhile; of a detached version, version is NULL.
-- Example: SELECT rows, bytes FROM lance_info('data/trips.lance')
CREATE OR REPLACE TEMP MACRO lance_info(
    table_name, version := NULL, tag := NULL, "asof" := NULL, branch := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'info', database::VARCHAR, table_name::VARCHAR,
        [version::VARCHAR, tag::VARCHAR, __lance_moment("asof"), branch::VARCHAR], NULL, current_setting('search_path')
    ));
