-- lance_metrics: one row for each value of a metric of this process since its start.
--
--   prefix       beginning of the names to list; default: all
--
-- Columns: name, kind (counter, gauge, histogram), labels (MAP), value. A histogram has a row for each bucket, for the sum and for
-- the count.
-- Example: FROM lance_metrics('lance_duck_cache')
CREATE OR REPLACE TEMP MACRO lance_metrics(prefix := NULL) AS TABLE
    SELECT * FROM query(__lance_history('metrics', NULL, prefix::VARCHAR, [NULL, NULL, NULL, NULL::VARCHAR], NULL, NULL))
    WHERE prefix IS NULL OR starts_with(name, prefix::VARCHAR);
