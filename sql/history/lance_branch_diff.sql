-- lance_branch_diff: the rows that differ between the newest versions of two branches of a Lance table.
--
--   table_name       folder or URI of the table; on connections of lance_duck.connect also its name
--   first_branch     name of a branch, or 'main'
--   second_branch    name of another branch
--   key              columns that identify a row, as a list; NULL: rows are compared by stable row id
--   database         database of the table, if the name does not include it
--
-- Columns: change_type ('delete': only in the first branch, 'insert': only in the second one, 'update_preimage' and
-- 'update_postimage'), _rowid, then those of the second branch.
-- Example: FROM lance_branch_diff('data/trips.lance', 'main', 'dev')
CREATE OR REPLACE TEMP MACRO lance_branch_diff(
    table_name, first_branch, second_branch, key := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'branch_diff', database::VARCHAR, table_name::VARCHAR, [NULL, NULL, NULL, NULL],
        list_concat([first_branch::VARCHAR, second_branch::VARCHAR], key::VARCHAR[]), current_setting('search_path')
    ));
