-- lance_tags: one row for each tag of a Lance table, by name.
--
--   table_name   folder or URI of the table; on connections of lance_duck.connect also its name
--   database     database of the table, if the name does not include it
--
-- Columns: tag, version, branch, created_at, updated_at.
-- Example: FROM lance_tags('data/trips.lance')
CREATE OR REPLACE TEMP MACRO lance_tags(table_name, database := NULL) AS TABLE
    FROM query(__lance_history(
        'tags', database::VARCHAR, table_name::VARCHAR, [NULL, NULL, NULL, NULL::VARCHAR], NULL, current_setting('search_path')
    ));
