-- lance_info: one row about a Lance table at a version.
--
--   table_name   folder or URI of the table; on connections of lance_duck.connect also its name
--   version      version number, tag, branch, or 'branch:number'
--   tag          tag
--   asof         time (timestamp or string): selects the newest version up to this time; without a time zone it is in the
--                TimeZone of the connection
--   branch       name of a branch
--   database     database of the table, if the name does not include it
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
