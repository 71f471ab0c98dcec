-- lance_metrics: one row for each value of a metric of this process since its start.
--
-- Columns: name, kind (counter, gauge, histogram), labels (MAP), value. A histogram has a row for each bucket, for the sum and for
-- the count.
-- Example: FROM lance_metrics() WHERE name = 'lance_duck_statements_total'
CREATE OR REPLACE TEMP MACRO lance_metrics() AS TABLE
    FROM query(__lance_history('metrics', NULL, NULL, [NULL, NULL, NULL, NULL::VARCHAR], NULL, NULL));
