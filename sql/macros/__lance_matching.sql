-- __lance_matching: a Lance table with columns that say which rows match words: what a view with `match` reads.
--
--   path     name or path of the table
--   asked    the columns, as lance_duck writes them down
CREATE OR REPLACE TEMP MACRO __lance_matching(path, asked) AS TABLE
    FROM query(__lance_matches(path::VARCHAR, asked::VARCHAR));
