-- lance_versions: one row for each version of a Lance table, oldest first.
--
--   table_name   folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   branch       name of a branch; without it main, or the branch that the table is opened on
--   database     database that has the table, where the name does not say
--
-- Columns: version, timestamp, operation (as Lance names it; NULL where the transaction was not kept), tags, rows,
-- fragments, files and bytes (of data files), author and message (of the commit), properties, writer.
-- Example: FROM lance_versions('data/trips.lance') WHERE timestamp > now() - INTERVAL 7 DAY
CREATE OR REPLACE TEMP MACRO lance_versions(table_name, branch := NULL, database := NULL) AS TABLE
    FROM query(__lance_history(
        'versions', database::VARCHAR, table_name::VARCHAR, [NULL, NULL, NULL, branch::VARCHAR], NULL, current_setting('search_path')
    ));
