-- lance_versions: one row for each version of a Lance table, oldest first.
--
--   table_name   folder or URI of the table; on connections of lance_duck.connect also its name
--   branch       branch; default: main, or the branch on which the table is open
--   database     database of the table, if the name does not include it
--
-- Columns: version, timestamp, operation (as Lance names it; NULL where the transaction was not kept), tags, rows,
-- fragments, files and bytes (of data files), author and message (of the commit), properties, writer.
-- Example: FROM lance_versions('data/trips.lance') WHERE timestamp > now() - INTERVAL 7 DAY
CREATE OR REPLACE TEMP MACRO lance_versions(table_name, branch := NULL, database := NULL) AS TABLE
    FROM query(__lance_history(
        'versions', database::VARCHAR, table_name::VARCHAR, [NULL, NULL, NULL, branch::VARCHAR], NULL, current_setting('search_path')
    ));
