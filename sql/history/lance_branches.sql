-- lance_branches: one row for each branch of a Lance table: main, then the others by name.
--
--   table_name   folder or URI of the table; on connections of lance_duck.connect also its name
--   database     database of the table, if the name does not include it
--
-- Columns: branch, parent_branch, parent_version, latest_version, created_at.
-- Example: FROM lance_branches('data/trips.lance')
CREATE OR REPLACE TEMP MACRO lance_branches(table_name, database := NULL) AS TABLE
    FROM query(__lance_history(
        'branches', database::VARCHAR, table_name::VARCHAR, [NULL, NULL, NULL, NULL::VARCHAR], NULL, current_setting('search_path')
    ));
