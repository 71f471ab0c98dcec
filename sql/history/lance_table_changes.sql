-- lance_table_changes: the rows that versions of a Lance table changed.
--
--   table_name   folder or URI of the table; on connections of lance_duck.connect also its name
--   first_version   number, tag or time of the first version to compare; NULL: the oldest
--   last_version    number, tag or time of the last version to compare; NULL: the newest
--   branch       branch; default: main, or the branch on which the table is open
--   database     database of the table, if the name does not include it
--
-- Both versions are included. A time selects the first version from it on, or the last version up to it.
-- Columns: snapshot_id (the version), rowid, change_type ('insert', 'delete', 'update_preimage', 'update_postimage'), then
-- those that the table has in the last version. In a table without stable row ids an updated row is deleted and inserted,
-- and rowid is the address of the row.
-- Example: FROM lance_table_changes('data/trips.lance', 3, 5)
CREATE OR REPLACE TEMP MACRO lance_table_changes(
    table_name, first_version, last_version := NULL, branch := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'table_changes', database::VARCHAR, table_name::VARCHAR, [NULL, NULL, NULL, branch::VARCHAR],
        [
            first_version::VARCHAR, epoch_us(TRY_CAST(first_version::VARCHAR AS TIMESTAMPTZ))::VARCHAR,
            last_version::VARCHAR, epoch_us(TRY_CAST(last_version::VARCHAR AS TIMESTAMPTZ))::VARCHAR
        ], current_setting('search_path')
    ));
